"""Section A of the catalogue, against the real product: no spelling of a host gets a different answer at another door.

The name server of these tests gives every name the canary's address, so whatever slips past the policy is accepted by
the canary and asked of the server; both count.
"""

from __future__ import annotations

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


@pytest.mark.backend("namespaces", "broker")
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
