"""Section D of the catalogue: TLS carries the decided name or nothing passes, at every door that leads to TLS (INV-4).

The door dials when the name is allowed, so the origin sees a connection; what it must not see is one byte of a hello
that names somebody else.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.rig.inside import Attack, attack

pytestmark = pytest.mark.usefixtures("user_namespaces")

HELLOS = r"""
import ssl

def sni(*names, kind=0):
    entries = b"".join(bytes([kind]) + struct.pack("!H", len(name)) + name for name in names)
    return struct.pack("!HHH", 0, len(entries) + 2, len(entries)) + entries

def extension(kind, data):
    return struct.pack("!HH", kind, len(data)) + data

def hello(*extensions, records=1):
    exts = b"".join(extensions)
    body = b"\x03\x03" + b"\x11" * 32 + b"\0" + b"\x00\x02\x13\x01" + b"\x01\x00" + struct.pack("!H", len(exts)) + exts
    return framed(b"\x01" + struct.pack("!I", len(body))[1:] + body, records)

def framed(message, records):
    size = -(-len(message) // records)
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + struct.pack("!H", len(part)) + part for part in parts)

def by_connect(host, port):
    sock, head = connect(host, port)
    return sock if status(head) == 200 else None

def by_socks(host, port):
    sock = dial()
    sock.sendall(b"\x05\x01\x00" + b"\x05\x01\x00\x03" + bytes([len(host)]) + host + struct.pack("!H", port))
    return sock if sock.recv(2) and sock.recv(10)[1] == 0 else None

def by_wire(host, port):
    return dial((address(host), port))

def send(way, *pieces, host=b"allowed.test", pause=0.0):
    # What came back: nothing when the door hung up.
    sock = way(host, port)
    try:
        for piece in pieces:
            sock.sendall(piece)
            if pause:
                time.sleep(pause)
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    with sock:
        return rest(sock)

def handshake(way, name, chop, host=b"allowed.test"):
    # A real TLS handshake whose first flight is sent in the pieces of chop(flight); True when it worked.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context.wrap_bio(incoming, outgoing, server_hostname=name)
    sock, first = way(host, port), True
    with sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(20):
            try:
                session.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                done = False
            except ssl.SSLError:
                return False
            flight = outgoing.read()
            try:
                for piece in chop(flight) if first else [flight]:
                    sock.sendall(piece)
                first = False
                if done:
                    sock.shutdown(socket.SHUT_WR)
                    while sock.recv(65536):  # a socket that is closed with bytes to read resets its connection
                        pass
                    return True
                data = sock.recv(65536)
            except OSError:
                return False
            if not data:
                return False
            incoming.write(data)
"""


@pytest.fixture
def tried(netsandbox: Any, canary: Any, authority: Any) -> Any:
    """tried(script, server) -> the attack; every .test name leads to SERVER, only allowed.test may be reached."""
    authority.answer("*.test", "127.0.0.1")

    def run(script: str, server: Any) -> Attack:
        options = ["--allow-domain", f"allowed.test:{server.port}", "--upstream-dns", authority.address]
        options += ["--allow-address", f"127.0.0.1:{server.port}"]
        return attack(netsandbox, options, HELLOS + script, arguments={"port": server.port})

    return run


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(55)
def test_55_the_hello_must_name_the_decided_host_at_every_door(tried: Any, canary: Any) -> None:
    server = canary.tcp(greeting=b"")
    script = """
ways = {"connect": by_connect, "socks5": by_socks, "transparent": by_wire}
out["mismatch"] = {name: send(way, hello(sni(b"denied.test"))) for name, way in ways.items()}
out["missing"] = {name: send(way, hello()) for name, way in ways.items()}
"""
    done = tried(script, server)
    assert set(done.out["mismatch"].values()) == set(done.out["missing"].values()) == {""}
    assert server.received == b""
    for door in ("connect", "socks5", "transparent"):
        assert len(done.denied(door=door, reason="sni-mismatch")) == 1
        assert len(done.denied(door=door, reason="sni-missing")) == 1


@pytest.mark.attack(55)
@pytest.mark.attack(59)
def test_55_59_the_right_name_passes_whole_and_in_pieces(tried: Any, canary: Any) -> None:
    server = canary.tcp(tls=("allowed.test",), greeting=b"hello")
    script = """
def bytewise(flight):
    return [flight[at : at + 1] for at in range(len(flight))]
def two_records(flight):
    return [framed(flight[5:], 2)]
whole = lambda flight: [flight]
good = (("allowed.test", whole), ("ALLOWED.test", whole), ("allowed.test", bytewise), ("allowed.test", two_records))
out["good"] = [handshake(way, name, chop) for way in (by_connect, by_socks, by_wire) for name, chop in good]
out["bad"] = [handshake(way, "denied.test", chop) for way in (by_connect, by_socks, by_wire)
    for chop in (whole, bytewise, two_records)]
"""
    done = tried(script, server)
    assert done.out["good"] == [True] * 12
    assert done.out["bad"] == [False] * 9
    names = [visit.server_name for visit in server.visits if visit.server_name]
    assert {name.lower() for name in names} == {"allowed.test"}
    assert {record["outcome"] for record in done.run.events("egress.end")} >= {"tls", "refused"}


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(58)
@pytest.mark.attack(60)
@pytest.mark.attack(65)
def test_58_60_65_a_hello_that_cannot_be_read_plainly_is_denied(tried: Any, canary: Any) -> None:
    server = canary.tcp()
    script = r"""
good = b"allowed.test"
odd = {
    "doubled names": hello(sni(good, b"denied.test")),
    "doubled extension": hello(sni(good), sni(b"denied.test")),
    "doubled, denied first": hello(sni(b"denied.test"), sni(good)),
    "another kind": hello(sni(good, kind=7)),
    "empty name": hello(sni(b"")),
    "empty list": hello(extension(0, b"\0\0")),
    "trailing dot": hello(sni(b"allowed.test.")),
    "NUL": hello(sni(b"allowed.test\0denied.test")),
    "NUL at the end": hello(sni(b"allowed.test\0")),
    "space": hello(sni(b"allowed.test ")),
    "not ASCII": hello(sni(b"\xd0\xb0llowed.test")),
    "long label": hello(sni(b"a" * 64 + b".test")),
    "long name": hello(sni(b"a." * 127 + b"t")),
    "underscore": hello(sni(b"allowed_.test")),
    "empty label": hello(sni(b"allowed..test")),
    "literal": hello(sni(b"127.0.0.1")),
    "ech under another name": hello(sni(b"denied.test"), extension(0xfe0d, b"\0" * 40)),
    "ech without a name": hello(extension(0xfe0d, b"\0" * 40)),
    "early data under another name": hello(sni(b"denied.test"), extension(42, b"")) + b"\x17\x03\x03\0\x04data",
    "padding, then another name": hello(extension(21, b"\0" * 16000), sni(b"denied.test")),
    "length lies": b"\x16\x03\x01\xff\xff" + b"\x01" + b"\0" * 100,
    "inner length lies": b"\x16\x03\x01\x00\x0a\x01\xff\xff\xff" + b"\0" * 6,
    "no hello": b"\x16\x03\x01\x00\x04\x02\0\0\0",
    "cut": hello(sni(good))[:-3],
    "SSL 2": b"\x80\x2e\x01\x00\x02" + b"\0" * 41,
    "endless": b"\x16\x03\x01\x40\x00\x01\x00\xff\xfc" + b"\0" * 70000,
}
out["odd"] = {name: send(by_connect, data) for name, data in odd.items()}
out["padded"] = send(by_connect, hello(extension(21, b"\0" * 12000), sni(good)))
"""
    done = tried(script, server)
    assert set(done.out["odd"].values()) == {""}
    assert done.denied(reason="ech")
    twin = max((bytes(visit.data) for visit in server.visits), key=len)
    assert len(twin) > 12000  # the padded hello with the right name went through whole
    others = [bytes(visit.data) for visit in server.visits if bytes(visit.data) != twin]
    # SSL 2 is not TLS: it is passed on as opaque bytes or refused, and names nobody either way.
    assert all(data == b"" or data.startswith(b"\x80\x2e") for data in others), others


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(56)
def test_56_behind_the_right_name_bytes_reach_the_decided_origin_and_no_other(tried: Any, canary: Any) -> None:
    """The residual of domain fronting: inside TLS another Host can be named, but to the allowed origin alone."""
    server = canary.http(tls=("allowed.test",), body=b"shared")
    script = """
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
with context.wrap_socket(by_connect(b"allowed.test", port), server_hostname="allowed.test") as sock:
    sock.sendall(b"GET / HTTP/1.1\\r\\nHost: denied.test\\r\\nConnection: close\\r\\n\\r\\n")
    out["fronted"] = rest(sock)
"""
    done = tried(script, server)
    assert "shared" in done.out["fronted"]
    (record,) = done.allowed()
    assert (record["host"], record["address"], record["port"]) == ("allowed.test", "127.0.0.1", server.port)


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(61)
def test_61_a_name_in_the_hello_does_not_open_an_address(tried: Any, canary: Any) -> None:
    server = canary.tcp()
    script = """
flight = hello(sni(b"allowed.test"))
targets = [("192.0.2.1", port), ("203.0.113.9", 443), ("198.18.200.200", port), ("10.1.2.3", 443), ("2001:db8::1", 443)]
out["direct"] = [say(flight, target) for target in targets]
out["literal"] = [status(connect(host, 443)[1]) for host in (b"192.0.2.1", b"[2001:db8::1]")]
out["twin"] = send(by_wire, flight)
"""
    done = tried(script, server)
    assert done.out["direct"] == [""] * 5
    assert done.out["literal"] == [403, 403]
    assert [bytes(visit.data)[:1] for visit in server.visits] == [b"\x16"]
    assert {record["address"] for record in done.denied(door="transparent")} >= {"192.0.2.1", "2001:db8::1"}


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(62)
def test_62_what_is_no_tls_is_relayed_and_recorded_as_opaque(tried: Any, canary: Any) -> None:
    server = canary.tcp(echo=True)
    script = """
out["ssh"] = send(by_connect, b"SSH-2.0-test\\r\\n")
out["raw"] = send(by_wire, b"\\x00\\x01\\x02 raw")
"""
    done = tried(script, server)
    assert done.out == {"ssh": "SSH-2.0-test\r\n", "raw": "\x00\x01\x02 raw"}
    assert [record["outcome"] for record in done.run.events("egress.end")] == ["opaque", "opaque"]


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(63)
def test_63_quic_goes_nowhere_and_is_recorded(tried: Any, canary: Any) -> None:
    server = canary.udp()
    script = """
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    where = address(b"allowed.test")
    sock.sendto(b"\\xc0\\0\\0\\0\\x01initial", (where, port))
    sock.sendto(b"\\xc0\\0\\0\\0\\x01initial", ("192.0.2.1", 443))
    sock.settimeout(0.2)
    out["answer"] = refused(sock.recv, 10)
"""
    done = tried(script, server)
    assert done.out["answer"] is not None
    assert server.datagrams == []
    records = done.run.events("udp", verdict="deny", reason="udp")
    assert {(record.get("host"), record["port"]) for record in records} == {("allowed.test", server.port), (None, 443)}
