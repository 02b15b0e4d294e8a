"""TLS over bytes: what one end encrypts, the other decrypts, in whatever parts it comes."""

from __future__ import annotations

import pytest

pytest.importorskip("mitmproxy")

from hypothesis import given, settings
from hypothesis import strategies as st
from netsandbox_proxy.inspect.authority import Authority
from netsandbox_proxy.inspect.session_ca import SessionCa
from netsandbox_proxy.inspect.tls_connection import TlsConnection
from netsandbox_proxy.inspect.tls_contexts import HTTP1, TlsContexts
from OpenSSL import SSL

HOST = "allowed.test"
AUTHORITY = Authority(SessionCa("s"))
CONTEXTS = TlsContexts(AUTHORITY, AUTHORITY.pem.encode("ascii"))


def connected() -> tuple[TlsConnection, TlsConnection]:
    client, server = CONTEXTS.to_server(HOST, HTTP1), CONTEXTS.to_client(HOST, HTTP1)
    for _ in range(3):
        for near, far in ((client, server), (server, client)):
            try:
                near.do_handshake()
            except SSL.WantReadError:
                pass
            if sent := near.unsent():
                far.bio_write(sent)
    assert client.decrypt(b"") == (b"", False)  # the tickets of TLS 1.3
    return client, server


@settings(max_examples=25)
@given(st.integers(0, 200_000), st.integers(1, 300_000))
def test_bytes_arrive_whole_in_any_parts(size: int, part: int) -> None:
    client, server = connected()
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    records = client.encrypt(data) if data else b""
    found = b"".join(server.decrypt(records[at : at + part])[0] for at in range(0, len(records), part))
    assert found == data


def test_the_end_is_told() -> None:
    client, server = connected()
    last = client.encrypt(b"last")
    client.shutdown()
    assert server.decrypt(last + client.unsent()) == (b"last", True)


def test_a_peer_that_takes_no_more_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    client, _ = connected()

    def refuse(data: bytes) -> int:
        raise SSL.ZeroReturnError

    monkeypatch.setattr(client, "sendall", refuse)
    assert client.encrypt(b"more") == b""


def test_a_broken_record_ends_the_text_and_the_peer_is_told() -> None:
    client, server = connected()
    good, bad = client.encrypt(b"good"), bytearray(client.encrypt(b"bad"))
    bad[-1] ^= 1
    assert server.decrypt(good + bytes(bad)) == (b"good", False)
    assert server.unsent()  # an alert
