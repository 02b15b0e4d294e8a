"""A server that speaks TLS is reached by its name: the ClientHello routes, bytes pass, and URLs become https."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Any

import pytest

from tests.rig.by_name import NAME, ask
from tests.rig.certificates import CertificateAuthority
from tests.rig.waiting import PATIENCE

PLAIN = f"GET /a?b HTTP/1.1\r\nHost: {NAME}:7878\r\n\r\n".encode()


def serve_tls(context: ssl.SSLContext) -> Callable[[socket.socket], None]:
    def serve(peer: socket.socket) -> None:
        try:
            with context.wrap_socket(peer, server_side=True) as tls:
                tls.sendall(b"echo " + tls.recv(99))
        except OSError:
            pass

    return serve


@pytest.fixture
def secure(rig: Any, door: Any, ca: CertificateAuthority) -> Any:
    """A server with TLS at the port 3000 of shop."""
    door.book.publish(3000, rig.server(serve_tls(ca.issue(NAME, f"3000.{NAME}").context())).port)
    return door


def talk(ca: CertificateAuthority, port: int, name: str) -> bytes:
    context = ssl.create_default_context(cafile=str(ca.cert))
    plain = socket.create_connection(("127.0.0.1", port), PATIENCE)
    with plain, context.wrap_socket(plain, server_hostname=name) as tls:
        tls.sendall(b"hello")
        return tls.recv(99)


@pytest.mark.parametrize("name", [NAME, f"3000.{NAME}"])
def test_the_server_name_routes_and_the_handshake_is_the_servers(
    secure: Any, ca: CertificateAuthority, name: str
) -> None:
    assert talk(ca, secure.port, name) == b"echo hello"
    assert secure.book.tls == {3000}


@pytest.mark.attack(183)
@pytest.mark.parametrize("name", ["evil.test", "nosuch.localhost", None])
def test_another_name_gets_an_alert_and_reaches_nothing(rig: Any, secure: Any, name: str | None) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with rig.client(secure.port) as plain, pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
        context.wrap_socket(plain, server_hostname=name)
    assert rig.inside.taken == []


def test_a_plain_request_is_sent_to_https(rig: Any, secure: Any, speak: Any) -> None:
    """OpenSSL closes without a word; the second request is redirected without a look."""
    for _ in range(2):
        answer = ask(rig, speak, secure.port, PLAIN)
        assert answer.startswith(b"HTTP/1.1 307 ")
        assert f"Location: https://{NAME}:7878/a?b\r\n".encode() in answer
    assert secure.book.tls == {3000}
    assert len(rig.inside.taken) == 2  # the request and the probe


def test_an_alert_is_understood(rig: Any, door: Any, speak: Any) -> None:
    door.book.publish(
        3000, rig.server(lambda peer: peer.recv(999) and peer.sendall(b"\x15\x03\x01\0\x02\x02\x46")).port
    )
    assert ask(rig, speak, door.port, PLAIN).startswith(b"HTTP/1.1 307 ")


def test_a_server_without_tls_that_closes_is_502(rig: Any, door: Any, speak: Any) -> None:
    door.book.publish(3000, rig.server(lambda peer: peer.recv(999) and None).port)
    answer = ask(rig, speak, door.port, PLAIN)
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b"closed the connection" in answer
    assert door.book.tls == set()


def test_a_server_that_gave_up_tls_is_learned_too(rig: Any, door: Any, ca: CertificateAuthority) -> None:
    door.book.tls.add(3000)
    door.book.publish(3000, rig.server(lambda peer: peer.recv(999) and peer.sendall(b"HTTP/1.1 400 Bad\r\n\r\n")).port)
    with pytest.raises(ssl.SSLError):
        talk(ca, door.port, NAME)
    assert door.book.tls == set()


def test_nothing_listens_behind_a_name_of_tls(rig: Any, door: Any, ca: CertificateAuthority) -> None:
    with pytest.raises(ssl.SSLError):
        talk(ca, door.port, NAME)
