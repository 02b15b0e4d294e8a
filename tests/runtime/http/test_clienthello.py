"""The name a TLS client asks for is read to the last byte, however the hello is cut, or the hello is refused."""

from __future__ import annotations

import ssl
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.runtime.http.clienthello import ClientHello, ClientHelloReader
from netsandbox.runtime.http.errors import ProtocolError


def vector(size: int, data: bytes) -> bytes:
    return len(data).to_bytes(size, "big") + data


def extension(kind: int, data: bytes) -> bytes:
    return kind.to_bytes(2, "big") + vector(2, data)


def server_name(*names: bytes, kind: int = 0) -> bytes:
    return extension(0, vector(2, b"".join(bytes([kind]) + vector(2, name) for name in names)))


def alpn(*protocols: bytes) -> bytes:
    return extension(16, vector(2, b"".join(vector(1, name) for name in protocols)))


def hello_body(extensions: bytes | None, **fields: bytes) -> bytes:
    body = fields.get("version", b"\x03\x03") + b"r" * 32 + vector(1, fields.get("session", b"s" * 32))
    body += vector(2, fields.get("suites", b"\x13\x01")) + vector(1, fields.get("compression", b"\0"))
    return body if extensions is None else body + vector(2, extensions)


def message(body: bytes, kind: int = 1) -> bytes:
    return bytes([kind]) + vector(3, body)


def records(handshake: bytes, size: int = 16384) -> bytes:
    return b"".join(b"\x16\x03\x01" + vector(2, handshake[at : at + size]) for at in range(0, len(handshake), size))


def hello(extensions: bytes | None, **fields: bytes) -> bytes:
    return records(message(hello_body(extensions, **fields)))


def read(data: bytes, step: int | None = None, limit: int = 65536) -> ClientHello | None:
    reader = ClientHelloReader(limit)
    size = step or len(data)
    for at in range(0, len(data), size):
        found = reader.feed(data[at : at + size])
        if found is not None:
            return found
    return None


def outcome(data: bytes, step: int) -> object:
    try:
        found = read(data, step, limit=400)
    except ProtocolError as error:
        return (error.reason, error.detail)
    return found and (found.sni, found.ech, found.alpn)


def openssl_hello(name: str | None, protocols: list[str]) -> bytes:
    context = ssl.create_default_context()
    context.check_hostname = name is not None
    if name is None:
        context.verify_mode = ssl.CERT_NONE
    if protocols:
        context.set_alpn_protocols(protocols)
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize("step", [1, 3, 100, None])
def test_openssls_hello_is_read(step: int | None) -> None:
    found = read(openssl_hello("Allowed.test", ["h2", "http/1.1"]), step)
    assert found is not None
    assert (found.sni, found.ech, found.alpn) == (b"Allowed.test", False, [b"h2", b"http/1.1"])


def test_a_hello_without_a_name() -> None:
    for data in (openssl_hello(None, []), hello(None), hello(b""), hello(extension(43, b"\x02\x03\x04"))):
        found = read(data)
        assert found is not None
        assert (found.sni, found.ech, found.alpn) == (None, False, [])


@pytest.mark.attack(59)
@pytest.mark.parametrize("size", [1, 2, 5, 40, 100])
@pytest.mark.parametrize("step", [1, 7, None])
def test_a_hello_over_many_records_and_segments(size: int, step: int | None) -> None:
    """Attack 59: the name in the second record, one-byte segments."""
    data = records(message(hello_body(alpn(b"h2") + server_name(b"allowed.test"))), size)
    found = read(data + b"\x17\x03\x03\x00\x05early", step)
    assert found is not None
    assert found.sni == b"allowed.test"


@pytest.mark.attack(59)
def test_padding_before_the_name() -> None:
    """Attack 59: 16 KB of padding in front of the name."""
    found = read(records(message(hello_body(extension(21, b"\0" * 16384) + server_name(b"allowed.test")))), 1)
    assert found is not None
    assert found.sni == b"allowed.test"


@pytest.mark.attack(59)
def test_an_unfinished_hello_says_nothing() -> None:
    """Attack 59: the door's deadline ends it."""
    data = hello(server_name(b"allowed.test"))
    assert all(read(data[:cut]) is None for cut in range(1, len(data)))


@pytest.mark.attack(59)
@pytest.mark.parametrize(
    "data",
    [
        records(message(b"x" * 70000)),
        b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + b"x" * 16380,
        records(message(b"x" * 30000), 1),
    ],
)
def test_the_limit_counts_wire_bytes(data: bytes) -> None:
    """Attack 59: what the door has to hold back is bounded."""
    for step in (1000, None):
        with pytest.raises(ProtocolError) as caught:
            read(data, step)
        assert caught.value.reason == "tls-unreadable"


@pytest.mark.attack(58)
@pytest.mark.parametrize(
    "name",
    [
        b"",
        b"allowed.test.",
        b".",
        b".allowed.test",
        b"allowed..test",
        b"al lowed.test",
        b"\xd0\xb0llowed.test",  # a Cyrillic letter
        b"allowed.test\x00",
        b"evil.test\x00.allowed.test",
        b"a" * 64 + b".test",
        b"a." * 126 + b"aa",
        b"a" * 300,
        b"*.test",
        b"a.test:443",
        b"[::1]",
        b"::1",
        b"a/b",
        b"a\r\nb",
        b"a\x7fb",
        b"\xff",
    ],
)
def test_a_malformed_name_is_unreadable(name: bytes) -> None:
    """Attack 58."""
    with pytest.raises(ProtocolError) as caught:
        read(hello(server_name(name)))
    assert (caught.value.reason, caught.value.status) == ("tls-unreadable", 400)


@pytest.mark.attack(58)
@pytest.mark.parametrize(
    "name",
    [b"a", b"a_b.test", b"_x.test", b"a" * 63 + b".test", b"a." * 126 + b"a", b"xn--e1afmkfd.test", b"192.0.2.1"],
)
def test_a_well_formed_name_is_read(name: bytes) -> None:
    """Attack 58: and the longest legal one too."""
    found = read(hello(server_name(name)))
    assert found is not None
    assert found.sni == name


@pytest.mark.attack(55)
@pytest.mark.parametrize(
    "extensions",
    [
        server_name(b"allowed.test") + server_name(b"denied.test"),
        server_name(b"allowed.test", b"denied.test"),
        server_name(b"a.test", kind=1),
        server_name(b"allowed.test") + alpn(b"h2") + server_name(b"allowed.test"),
        server_name(),
        extension(0, b""),
        extension(0, b"\x00\x05\x00\x00\t"),
        extension(0, vector(2, b"\x00" + vector(2, b"a.test")) + b"x"),
        alpn(),
        alpn(b""),
        extension(16, b"\x00"),
        alpn(b"h2") + b"\x00",
        extension(16, vector(2, vector(1, b"h2")) + b"x"),
        extension(43, b"") * 2,
        b"\x00\x00\x00\xff",
    ],
)
def test_doubled_and_broken_extensions_are_unreadable(extensions: bytes) -> None:
    """Attack 55: two names are no name."""
    with pytest.raises(ProtocolError):
        read(hello(extensions))


@pytest.mark.parametrize(
    "data",
    [
        hello(b"", version=b"\x02\x00"),
        hello(b"", session=b"s" * 33),
        hello(b"", suites=b""),
        hello(b"", suites=b"\x13"),
        hello(b"", compression=b""),
        records(message(hello_body(b"") + b"x")),
        records(message(b"")),
        records(message(b"\x03\x03")),
        records(message(hello_body(None) + b"\x00")),
        records(message(hello_body(b"")) + b"\x01"),
        records(message(hello_body(b""), kind=2)),
        records(message(hello_body(b""), kind=0)),
        b"\x16\x03\x01\x00\x00",
        b"\x16\x03\x01@\x01",
        b"\x16\x02",
        b"\x17\x03\x03\x00\x01",
        b"\x15\x03\x01\x00\x02\x01Z",
        b"\x80.\x01\x03\x01",
        records(message(hello_body(b""))[:9]) + b"\x14\x03\x03\x00\x01\x01",
    ],  # another record inside the hello
)
def test_what_is_no_client_hello_is_unreadable(data: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        read(data)
    assert caught.value.reason == "tls-unreadable"


@pytest.mark.attack(60)
@pytest.mark.parametrize("kind", [0xFE0D, 0xFE08, 0xFFCE])
def test_encrypted_hellos_are_seen(kind: int) -> None:
    """Attack 60: ECH and ESNI are reported beside the outer name."""
    found = read(hello(server_name(b"allowed.test") + extension(kind, b"\0" * 20)))
    assert found is not None
    assert (found.sni, found.ech) == (b"allowed.test", True)


@pytest.mark.attack(65)
def test_early_data_behind_the_hello_is_not_looked_at() -> None:
    """Attack 65: the name is known before any early data counts."""
    found = read(hello(server_name(b"allowed.test") + extension(42, b"")) + b"\x17\x03\x03\xff\xff garbage")
    assert found is not None
    assert found.sni == b"allowed.test"


def test_after_an_error_no_hello_comes_out() -> None:
    reader = ClientHelloReader()
    with pytest.raises(ProtocolError):
        reader.feed(hello(server_name(b"")))
    with pytest.raises(ProtocolError):
        reader.feed(hello(server_name(b"allowed.test")))


def test_a_byte_at_a_time_is_linear() -> None:
    data = records(message(hello_body(extension(21, b"\0" * 40000))))
    begun = time.process_time()
    assert read(data, 1) is not None
    assert time.process_time() - begun < 2


@given(
    st.lists(
        st.sampled_from(
            [
                server_name(b"a.test"),
                server_name(b"a.test", b"b.test"),
                alpn(b"h2"),
                extension(0xFE0D, b"x"),
                extension(7, b""),
                b"\0",
            ]
        ),
        max_size=4,
    ).map(b"".join),
    st.integers(1, 60),
    st.integers(1, 50),
    st.sampled_from([b"", b"\x16\x03", b"\x15\x03\x01\x00\x02\x01\x00", b"x"]),
)
def test_a_client_hello_in_pieces_is_read_like_a_whole_one(
    extensions: bytes, size: int, step: int, before: bytes
) -> None:
    data = before + records(message(hello_body(extensions)), size)
    assert outcome(data, len(data)) == outcome(data, step) == outcome(data, 1)


@given(
    st.binary(min_size=1, max_size=120)
    | st.binary(max_size=80).map(lambda tail: b"\x16\x03\x01" + vector(2, message(tail)) + tail),
    st.integers(1, 9),
)
def test_garbage_ends_in_our_error_or_in_waiting(data: bytes, step: int) -> None:
    assert outcome(data, len(data)) == outcome(data, step) == outcome(data, 1)


@given(st.data())
def test_a_flipped_byte_never_escapes_as_another_exception(data: st.DataObject) -> None:
    raw = bytearray(hello(server_name(b"allowed.test") + alpn(b"h2")))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    assert outcome(bytes(raw), len(raw)) == outcome(bytes(raw), 1)
