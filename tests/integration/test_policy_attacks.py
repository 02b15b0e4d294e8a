"""Section A of the catalogue, against the real product: no spelling of a host gets a different answer at another door.

The name server of these tests gives every name the canary's address, so whatever slips past the policy is accepted by
the canary and asked of the server; both count.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from netsandbox.policy.names import BadName, canonical
from netsandbox.policy.policy import Policy
from netsandbox.policy.verdict import DNS, TCP, Request
from tests.rig.inside import attack

pytestmark = pytest.mark.usefixtures("user_namespaces")

ALLOWED = ["allowed.test", "api.allowed.test", "ALLOWED.test", "AlLoWeD.tEsT", "allowed.test.", "a.wild.test"]
SUFFIXES = [
    "evilallowed.test",
    "evil-allowed.test",
    "allowed.test.evil.test",
    "allowed.testx",
    "allowed.tes",
    "allowed",
    "test",
    "wild.test",
    "xwild.test",
    "a.b.wild.test",
    "a.b.c.d.wild.test",
    "..wild.test",
    ".wild.test",
    "a..wild.test",
    ".allowed.test",
    "allowed..test",
    "allowed.test..",
    ".",
    "bad.wild.test",
    "BAD.wild.test.",
    "x.bad.wild.test",
    "good.bad.wild.test.",
]
CONTROL = [f"evil.test{chr(code)}.allowed.test" for code in (*range(0x21), *range(0x7F, 0x100))]
CONTROL += [f"allowed.test{chr(code)}" for code in (0, 9, 10, 11, 13, 32, 0x7F, 0x80, 0xA0, 0xFF)]
ENCODED = ["evil.test%00.allowed.test", "allowed%2etest", "allowed.test%0d%0a", "%61llowed.test", "allowed.test%20"]
PUNCTUATION = [f"allowed.test{mark}evil.test" for mark in "!\"#$&'()*+,;<=>?@[\\]^`{|}~"]
PUNCTUATION += [f"evil.test{mark}allowed.test" for mark in "#$&*+,;<=>@\\^`|~"]
UNICODE = [
    "\u0430llowed.test",
    "allo\u212aed.test",
    "al\u0131owed.test",
    "allowed\u3002test",
    "allowed\uff0etest",
    "allowed\uff61test",
    "allo\u00adwed.test",
    "allow\u200ded.test",
    "\uff41llowed.test",
    "\u017fubdomain.allowed.test",
]
PUNYCODE = [
    "xn--llowed-4nf.test",
    "xn--.test",
    "xn--a.allowed.test",
    "xn--99zzzz9999.allowed.test",
    "xn--80ak6aa92e.test",
]
NUMBERS = [
    "127.1",
    "0x7f.1",
    "0177.0.0.1",
    "2130706433",
    "0x7f000001",
    "017700000001",
    "127.0.0.1.",
    "0",
    "1.2.3",
    "256.256.256.256",
    "1.2.3.4.5",
    "0x7f.0.0.0x1",
    "127.0.0.1",
    "127.0.0.2",
    "0.0.0.0",
    "10.0.0.1",
    "169.254.169.254",
    "192.0.2.1",
    "198.51.100.1",
    "203.0.113.1",
    "allowed.test.127.0.0.1",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[2001:db8::1]",
    "[64:ff9b::7f00:1]",
    "[::1",
    "::1",
    "2001:db8::1",
    "[allowed.test]",
    "[fe80::1%25lo]",
    "[fe80::1%lo]",
]
LONG = [
    "a" * 63 + ".allowed.test",
    "a" * 64 + ".allowed.test",
    ".".join(["a" * 59] * 4) + ".allowed.test",
    ".".join(["a"] * 119) + ".allowed.test",
    ".".join(["a"] * 125) + ".allowed.test",
    "localhost",
    "x.localhost",
    "LOCALHOST.",
    "ip6-localhost",
    "localhost.localdomain",
    "localhost.allowed.test",
]
HOSTS = [*ALLOWED, *SUFFIXES, *CONTROL, *ENCODED, *PUNCTUATION, *UNICODE, *PUNYCODE, *NUMBERS, *LONG]

MATRIX = r"""
def verdicts(host):
    sock, head = connect(host, port)
    sock.close()
    plain = get(host, port)
    row = {"connect": [status(head) == 200, reason(head)], "http": [status(plain) == 200, reason(plain)]}
    if len(host) < 256:
        row["socks5"] = [socks(host, port) == 0, ""]
    parts = (host[:-1] if host.endswith(b".") else host).split(b".")
    if all(0 < len(part) < 64 for part in parts) and len(labels(host)) <= 255:
        answer = ask(host)
        row["dns"] = [bool(answer and answer[0] == 0 and answer[1]), ""]
        if row["dns"][0] and not answer[1][0].startswith("127."):
            page = say(b"GET / HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n", (answer[1][0], port))
            row["transparent"] = [status(page) == 200, ""]
    return row

out["rows"] = [verdicts(host.encode("latin-1")) for host in hosts]
"""


def wire(host: str) -> str:
    """The bytes a client would send for HOST, as Latin-1 text."""
    return host if all(ord(char) < 0x100 for char in host) else host.encode().decode("latin-1")


def decided(policy: Policy, host: str, port: int, kind: str) -> tuple[bool, str]:
    try:
        name = canonical(host.encode("latin-1"))
    except BadName:
        return False, "bad-name"
    verdict = policy.decide(Request(name, port, kind))
    return verdict.allowed, verdict.reason


@pytest.mark.attack(2)
@pytest.mark.attack(3)
@pytest.mark.attack(4)
@pytest.mark.attack(5)
@pytest.mark.attack(7)
@pytest.mark.attack(8)
@pytest.mark.attack(9)
@pytest.mark.attack(52)
@pytest.mark.ordinary_user
def test_52_the_same_host_gets_the_same_verdict_at_every_door(netsandbox: Any, canary: Any, authority: Any) -> None:
    """INV-2, INV-3. The spellings of attacks 2 to 9, 86, 87 and 90 are rows of this matrix."""
    server = canary.http(body=b"reached")
    authority.answer("*.test", server.host)
    authority.answer("*.testx", server.host)
    port = server.port
    rules = [f"allowed.test:{port}", f"api.allowed.test:{port}", f"*.wild.test:{port}"]
    rules.append(f"localhost.allowed.test:{port}")
    denied, reachable = ["**.bad.wild.test"], [f"127.0.0.1:{port}"]
    options = [word for rule in rules for word in ("--allow-domain", rule)]
    options += ["--deny-domain", denied[0], "--allow-address", reachable[0], "--upstream-dns", authority.address]
    hosts = [wire(host) for host in HOSTS]
    tried = attack(netsandbox, options, MATRIX, arguments={"hosts": hosts, "port": port}, timeout=120)
    policy = Policy(rules, denied, reachable)
    wrong, opened = [], 0
    for host, row in zip(hosts, tried.out["rows"], strict=True):
        for door, (allowed, why) in row.items():
            expected, reason = decided(policy, host, port, DNS if door == "dns" else TCP)
            parsed = why in ("", "malformed", "unsupported", "host-mismatch", "bad-name", "bad-port")
            if allowed != expected or not (parsed or why == reason):
                wrong.append((host, door, allowed, why, expected, reason))
            opened += allowed
    assert not wrong
    assert opened > 20  # the twins: allowed names came through every door
    fields = [line.lower() for line in server.received.split(b"\r\n") if line.lower().startswith(b"host:")]
    visited = {field.partition(b":")[2].strip().removesuffix(b":%d" % port).decode("latin-1") for field in fields}
    assert visited >= {"allowed.test", "a.wild.test"}
    assert [name for name in visited if not decided(policy, name, port, TCP)[0]] == []
    assert all(decided(policy, name, port, TCP)[0] for name in authority.names), authority.names


@pytest.mark.attack(1)
@pytest.mark.parametrize("spelling", ["nothing", "empty list", "absent key", "--offline", "--localhost"])
def test_1_an_empty_allow_list_lets_nothing_out(netsandbox: Any, canary: Any, authority: Any, spelling: str) -> None:
    server = canary.http()
    authority.answer("*.test", server.host)
    config = netsandbox.home().work / "netsandbox.toml"
    config.write_text(
        "[network]\nallow_domains = []\n" if spelling == "empty list" else "[network]\nproxy_env = true\n"
    )
    options = {"nothing": [], "--offline": ["--offline"], "--localhost": ["--localhost"]}
    chosen = options.get(spelling, ["--config", str(config)])
    script = """
sock, head = connect(b"any.test", port)
out["connect"], out["http"] = status(head), status(get(b"any.test", port))
out["socks"], out["dns"] = socks(b"any.test", port), ask(b"any.test")
out["direct"] = say(b"x", ("192.0.2.1", 80))
"""
    tried = attack(netsandbox, [*chosen, "--upstream-dns", authority.address], script, arguments={"port": server.port})
    assert (tried.out["connect"], tried.out["http"]) == (403, 403)
    assert tried.out["socks"] not in (0, -1)
    assert tried.out["dns"] == [3, []]
    assert tried.out["direct"] == ""
    assert (server.accepts, authority.queries) == (0, [])
    assert {record["reason"] for record in tried.denied()} == {"offline"}


@pytest.mark.attack(6)
@pytest.mark.parametrize("pattern", ["*", "*.com", "**", "[*]", "*.*", "?", "*.co.uk", "example.*", "", "a.*.test"])
def test_6_a_pattern_that_is_too_broad_is_refused_and_nothing_runs(netsandbox: Any, pattern: str) -> None:
    marker = netsandbox.home().work / "started"
    run = netsandbox("run", "--allow-domain", pattern, "--", "touch", marker)
    assert run.returncode == 2
    assert run.stderr.startswith("netsandbox: ")
    assert run.stderr.count("\n") == 1
    assert not marker.exists()


@pytest.mark.attack(13)
def test_13_an_ipv6_address_with_a_port_needs_brackets(netsandbox: Any) -> None:
    ambiguous = netsandbox("run", "--allow-address", "2001:db8::1:443", "--", "true")
    assert ambiguous.returncode in (0, 2)
    script = """
out["bare"] = [reason(say(b"CONNECT 2001:db8::1:443 HTTP/1.1\\r\\nHost: 2001:db8::1:443\\r\\n\\r\\n"))]
sock, head = connect(b"[2001:db8::1]", 443)
out["bracketed"] = reason(head)
"""
    tried = attack(netsandbox, ["--allow-domain", "allowed.test"], script)
    assert tried.out["bare"][0] in ("malformed", "bad-name")
    assert tried.out["bracketed"] == "address-literal"


@pytest.mark.attack(14)
def test_14_only_the_named_port_is_reached(netsandbox: Any, canary: Any, authority: Any) -> None:
    wanted, other = canary.http(body=b"reached"), canary.http()
    authority.answer("allowed.test", "127.0.0.1")
    script = """
out["good"] = [status(connect(b"allowed.test", wanted)[1]), status(get(b"allowed.test", wanted))]
out["good"].append(socks(b"allowed.test", wanted))
out["other"] = [reason(connect(b"allowed.test", port)[1]) for port in (other, 22, 25, 9999)]
out["other"] += [reason(get(b"allowed.test", port)) for port in (other, 22, 25, 9999)]
out["socks"] = [socks(b"allowed.test", port) for port in (other, 22, 0)]
where = address(b"allowed.test")
out["transparent"] = say(b"GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n", (where, other))
out["odd"] = []
odd = [b"0", b"65536", b"0%d" % wanted, b"+%d" % wanted, b" %d" % wanted, b"\\xef\\xbc\\x94", b"-1", b"", b"1e2"]
for text in odd:
    target = b"allowed.test:" + text
    out["odd"].append(status(say(b"CONNECT " + target + b" HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n")))
    out["odd"].append(status(say(b"GET http://" + target + b"/ HTTP/1.1\\r\\nHost: " + target + b"\\r\\n\\r\\n")))
"""
    options = ["--allow-domain", f"allowed.test:{wanted.port}", "--allow-address", "127.0.0.0/8:*"]
    options += ["--upstream-dns", authority.address]
    tried = attack(netsandbox, options, script, arguments={"wanted": wanted.port, "other": other.port})
    assert tried.out["good"] == [200, 200, 0]
    assert set(tried.out["other"]) == {"port-not-allowed"}
    assert all(code not in (0, -1) for code in tried.out["socks"])
    assert tried.out["transparent"] == ""
    assert other.accepts == 0
    # An empty port in an absolute URL is the scheme's default (RFC 9110), which this policy does not allow.
    assert set(tried.out["odd"]) <= {400, 403}


@pytest.mark.attack(15)
@pytest.mark.parametrize("order", ["allow first", "deny first"])
def test_15_deny_wins_in_any_order(netsandbox: Any, canary: Any, authority: Any, order: str) -> None:
    server = canary.http(body=b"reached")
    authority.answer("*.x.test", server.host)
    allow, deny = ["--allow-domain", f"*.x.test:{server.port}"], ["--deny-domain", "bad.x.test"]
    rules = [*allow, *deny] if order == "allow first" else [*deny, *allow]
    script = """
out["good"] = status(get(b"good.x.test", port))
out["bad"] = [reason(get(name, port)) for name in (b"bad.x.test", b"BAD.x.test", b"bad.x.test.")]
out["dns"] = ask(b"bad.x.test")
"""
    options = [*rules, "--allow-address", f"127.0.0.1:{server.port}", "--upstream-dns", authority.address]
    tried = attack(netsandbox, options, script, arguments={"port": server.port})
    assert tried.out["good"] == 200
    assert tried.out["bad"] == ["deny-rule"] * 3
    assert tried.out["dns"] == [3, []]
    assert server.accepts == 1
    assert authority.under("bad.x.test") == []


CONFIGURATIONS = {
    "unknown key": "[network]\nallow_domain = ['a.test']\n",
    "unknown table": "[networks]\nallow_domains = ['a.test']\n",
    "wrong type": "[network]\nallow_domains = 'a.test'\n",
    "wildcard in a URL": "[network]\nallow_domains = ['https://*.x.test']\n",
    "empty": "",
    "no TOML": "allow: []\n",
    "doubled key": "[network]\nallow_domains = []\nallow_domains = ['a.test']\n",
    "a number": "[network]\nallow_domains = [7]\n",
    "bad mode": "[network]\nmode = 'open'\n",
}


@pytest.mark.attack(16)
@pytest.mark.parametrize("name", [*CONFIGURATIONS, "missing", "unreadable", "a directory"])
def test_16_a_mistake_in_the_configuration_is_never_an_open_door(netsandbox: Any, name: str) -> None:
    home = netsandbox.home()
    config, marker = home.work / "rules.toml", home.work / "started"
    if name in CONFIGURATIONS:
        config.write_text(CONFIGURATIONS[name])
    if name == "a directory":
        config.mkdir()
    if name == "unreadable":
        config.symlink_to(config)
    run = netsandbox("run", "--config", config, "--", "touch", marker)
    assert (run.returncode, run.stderr.count("\n"), marker.exists()) == (2, 1, False), run.stderr
    assert run.stderr.startswith("netsandbox: ")


@pytest.mark.attack(16)
def test_16_the_right_configuration_is_obeyed(netsandbox: Any, canary: Any, authority: Any) -> None:
    server = canary.http(body=b"reached")
    authority.answer("*.test", server.host)
    config = netsandbox.home().work / "rules.toml"
    config.write_text(
        f'[network]\nallow_domains = ["a.test:{server.port}"]\nallow_addresses = ["127.0.0.1:{server.port}"]\n'
        f'upstream_dns = ["{authority.address}"]\n'
    )
    script = 'out["a"], out["b"] = status(get(b"a.test", port)), status(get(b"b.test", port))'
    tried = attack(netsandbox, ["--config", str(config)], script, arguments={"port": server.port})
    assert tried.out == {"a": 200, "b": 403}
    assert server.accepts == 1


@pytest.mark.attack(19)
def test_19_online_keeps_every_other_guard(netsandbox: Any, canary: Any, authority: Any) -> None:
    server = canary.http(body=b"reached")
    authority.answer("*.test", server.host)
    authority.answer("inside.example", "127.0.0.1")
    script = """
out["private"] = [reason(get(name, port)) for name in (b"inside.example", b"127.0.0.1", b"localhost")]
out["denied"] = reason(get(b"bad.test", port))
out["resolver"] = ask(b"dns.google")
out["netlink"] = refused(socket.socket, 16, 3, 0)
out["packet"] = refused(socket.socket, 17, 3, 0)
out["capabilities"] = [line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")]
"""
    options = ["--online", "--deny-domain", "bad.test", "--upstream-dns", authority.address]
    tried = attack(netsandbox, options, script, arguments={"port": server.port})
    assert tried.out["private"] == ["address-guard"] * 3
    assert tried.out["denied"] == "deny-rule"
    assert tried.out["resolver"] == [3, []]
    assert tried.out["packet"] == "EPERM"
    assert tried.out["netlink"] in ("EPERM", None)  # reading one's own interfaces is harmless, changing them is not
    assert set(tried.out["capabilities"]) == {"0000000000000000"}
    assert server.accepts == 0


@pytest.mark.attack(20)
def test_20_over_long_hosts_are_refused_quickly(netsandbox: Any) -> None:
    script = """
out["codes"], began = [], time.monotonic()
for host in (b"a" * 100_000, b".".join([b"a"] * 1000), b"a." * 30_000, b"a" * 254, b"[" + b":" * 60_000 + b"]"):
    out["codes"].append(status(say(b"CONNECT " + host + b":443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")))
    out["codes"].append(status(say(b"GET http://" + host + b"/ HTTP/1.1\\r\\nHost: " + host + b"\\r\\n\\r\\n")))
out["seconds"] = time.monotonic() - began
"""
    tried = attack(netsandbox, ["--allow-domain", "allowed.test"], script)
    assert set(tried.out["codes"]) <= {0, 400, 403, 414, 421, 431}
    assert tried.out["seconds"] < 5


@pytest.mark.attack(148)
@pytest.mark.ordinary_user
def test_148_the_workload_cannot_widen_the_policy_of_the_next_run(netsandbox: Any) -> None:
    """INV-8: the configuration lies in the project folder, which the workload owns."""
    folder = netsandbox.home().work / "settings"
    folder.mkdir()
    config = folder / "rules.toml"
    config.write_text('[network]\nallow_domains = ["a.test"]\n')
    for path in (folder, config):
        os.chown(path, netsandbox.identity.uid, netsandbox.identity.gid)
    script = """
def write():
    open(config, "a").close()
out["tries"] = [refused(write), refused(os.unlink, config), refused(os.rename, config, config + ".old"),
    refused(os.truncate, config, 0), refused(os.rename, os.path.dirname(config), os.path.dirname(config) + ".old")]
"""
    tried = attack(netsandbox, ["--config", str(config)], script, arguments={"config": str(config)})
    assert None not in tried.out["tries"]
