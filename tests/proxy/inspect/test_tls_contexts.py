"""TLS towards clients and servers."""

from __future__ import annotations

import pytest

pytest.importorskip("OpenSSL")

from netsandbox_proxy.inspect import tls_contexts
from netsandbox_proxy.inspect.authority import Authority
from netsandbox_proxy.inspect.session_ca import SessionCa
from netsandbox_proxy.inspect.tls_contexts import HTTP1, HTTP2, TlsContexts
from OpenSSL import SSL


def handshake(client: SSL.Connection, server: SSL.Connection) -> None:
    for _ in range(6):
        for one, other in ((client, server), (server, client)):
            try:
                one.do_handshake()
            except SSL.WantReadError:
                pass
            try:
                other.bio_write(one.bio_read(65536))
            except SSL.WantReadError:
                pass


def contexts(session: str = "s") -> TlsContexts:
    authority = Authority(SessionCa(session))
    return TlsContexts(authority, b"\n" + authority.pem.encode() + b"-----BEGIN CERTIFICATE-----\nx\n")


def test_a_server_of_a_trusted_authority_is_accepted_by_its_name() -> None:
    made = contexts()
    assert made.trusted == 1
    client, server = made.to_server("a.test", HTTP2), made.to_client("a.test", HTTP2)
    handshake(client, server)
    assert client.get_alpn_proto_negotiated() == HTTP2
    assert server.get_servername() == b"a.test"


def test_another_name_is_refused() -> None:
    made = contexts()
    with pytest.raises(SSL.Error):
        handshake(made.to_server("a.test", HTTP1), made.to_client("b.test", HTTP1))


def test_another_authority_is_refused() -> None:
    with pytest.raises(SSL.Error):
        handshake(contexts().to_server("a.test", HTTP1), contexts("t").to_client("a.test", HTTP1))


def test_the_certificates_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_contexts, "MAX_CERTIFICATES", 2)
    made = contexts()
    first = made._certificate("a.test")
    assert made._certificate("a.test") is first
    for name in ("b.test", "c.test"):
        made._certificate(name)
    assert list(made._certificates) == ["c.test"]


def test_a_protocol_that_was_not_chosen_is_not_agreed_to() -> None:
    made = contexts()
    client = made.to_server("a.test", HTTP2)
    handshake(client, made.to_client("a.test", HTTP1))
    assert client.get_alpn_proto_negotiated() == b""
