"""CONNECT and transparent connections, end to end on loopback."""

from __future__ import annotations

import socket
from typing import Any

import pytest

CONNECT = b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n"
DENIED = b"CONNECT denied.test:443 HTTP/1.1\r\nHost: denied.test:443\r\n\r\n"


def test_a_connect_tunnel_carries_bytes_both_ways_and_is_recorded_once(rig: Any) -> None:
    canary = rig.canary()
    client = rig.tunnel(rig.mixed())
    client.sendall(b"\x00\x01hello")
    assert client.recv(100) == b"\x00\x01hello"
    client.close()
    rig.settle()
    assert canary.accepts == 1
    assert rig.gate.named("admit") == [("admit", "connect", b"allowed.test", 443, None)]
    assert rig.gate.named("ended") == [("ended", "allowed.test", "127.0.0.1", 7, 7, "opaque")]
    assert [call[0] for call in rig.gate.calls] == ["admit", "dialling", "ended"]


def test_a_denied_connect_hears_403_and_why(rig: Any, speak: Any) -> None:
    client = rig.client(rig.mixed())
    client.sendall(DENIED)
    answer = speak.read_all(client)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"x-netsandbox-reason: not-allowed\r\n" in answer
    assert b"denied.test:443" in answer
    client.close()
    rig.settle()
    assert [call[0] for call in rig.gate.calls] == ["admit"]


def test_a_transparent_connection_goes_where_the_kernel_says_it_was_going(rig: Any) -> None:
    rig.canary(name="198.18.0.7")
    client = rig.client(rig.transparent("198.18.0.7", 22))
    client.sendall(b"\x00\x01hello")
    assert client.recv(100) == b"\x00\x01hello"
    client.close()
    rig.settle()
    assert rig.gate.named("admit") == [("admit", "transparent", b"198.18.0.7", 22, "198.18.0.7")]


@pytest.mark.attack(61)
def test_a_denied_transparent_connection_is_reset(rig: Any) -> None:
    port = rig.transparent("192.0.2.9", 443)
    with pytest.raises(ConnectionResetError):
        rig.client(port).recv(1)  # the reset may come before connect() has returned
    rig.settle()
    assert [call[0] for call in rig.gate.calls] == ["admit"]


@pytest.mark.attack(31)
def test_bytes_before_the_200_wait_and_are_judged_all_the_same(rig: Any, speak: Any) -> None:
    canary = rig.canary()
    rig.gate.delay = 0.05
    client = rig.client(rig.mixed())
    client.sendall(CONNECT + speak.client_hello("denied.test"))
    assert speak.read_head(client).startswith(b"HTTP/1.1 200 ")
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    rig.settle()
    assert canary.everything() == b""
    assert rig.gate.named("refuse") == [("refuse", "allowed.test", "sni-mismatch")]
    assert rig.gate.named("ended")[0][3:] == (0, 0, "refused")


@pytest.mark.attack(31)
def test_bytes_behind_a_denied_connect_reach_nobody(rig: Any, speak: Any) -> None:
    canary = rig.canary()
    client = rig.client(rig.mixed())
    client.sendall(DENIED + speak.client_hello("allowed.test"))
    assert speak.read_all(client).startswith(b"HTTP/1.1 403 ")
    assert canary.accepts == 0


def test_the_decided_name_as_sni_passes_whole_and_is_noted(rig: Any, speak: Any) -> None:
    canary = rig.canary()
    client = rig.tunnel(rig.mixed())
    hello = speak.client_hello("ALLOWED.test")
    client.sendall(hello)
    assert client.recv(1000) == hello
    client.close()
    rig.settle()
    assert canary.everything() == hello
    assert rig.gate.named("ended")[0][5] == "tls"


@pytest.mark.attack(59)
def test_a_hello_in_single_bytes_passes_once_it_is_whole(rig: Any, speak: Any) -> None:
    canary = rig.canary()
    client = rig.tunnel(rig.mixed())
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    hello = speak.client_hello("allowed.test")
    for byte in hello[:-1]:
        client.send(bytes((byte,)))
    rig.wait_until_read(client)
    assert canary.heard == b""
    client.send(hello[-1:])
    assert client.recv(1000) == hello


@pytest.mark.attack(55)
@pytest.mark.parametrize(
    ("name", "extensions", "reason"),
    [
        ("denied.test", (), "sni-mismatch"),
        (None, (), "sni-missing"),
        ("bad name", (), "tls-unreadable"),
        ("front.test", ((0xFE0D, b"\0" * 8),), "ech"),
        (None, ((0xFE0D, b"\0" * 8),), "ech"),
    ],
)
def test_another_name_in_the_hello_resets_both_and_nothing_of_it_leaves(
    rig: Any, speak: Any, name: str | None, extensions: tuple[tuple[int, bytes], ...], reason: str
) -> None:
    canary = rig.canary()
    client = rig.tunnel(rig.mixed())
    client.sendall(speak.client_hello(name, *extensions))
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    rig.settle()
    assert canary.everything() == b""
    assert rig.gate.named("refuse") == [("refuse", "allowed.test", reason)]
    assert rig.gate.named("ended")[0][5] == "refused"


@pytest.mark.attack(60)
def test_grease_ech_under_the_decided_name_passes(rig: Any, speak: Any) -> None:
    rig.canary()
    client = rig.tunnel(rig.mixed())
    hello = speak.client_hello("allowed.test", (0xFE0D, b"\0" * 8))
    client.sendall(hello)
    assert client.recv(1000) == hello


@pytest.mark.attack(61)
def test_sni_is_compared_on_transparent_connections_to_a_name(rig: Any, speak: Any) -> None:
    canary = rig.canary(name="allowed.test")
    client = rig.client(rig.transparent("allowed.test", 443))
    client.sendall(speak.client_hello("denied.test"))
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    rig.settle()
    assert canary.everything() == b""


def test_an_address_that_was_allowed_has_no_name_to_compare(rig: Any, speak: Any) -> None:
    rig.canary(name="192.0.2.1")
    client = rig.tunnel(rig.mixed(), "192.0.2.1:443")
    hello = speak.client_hello("whatever.test")
    client.sendall(hello)
    assert client.recv(1000) == hello


@pytest.mark.attack(62)
def test_a_server_that_speaks_first_is_heard_before_the_client_said_anything(rig: Any) -> None:
    def mail(canary: Any, peer: socket.socket) -> None:
        peer.sendall(b"220 ready\r\n")
        canary.hear(peer)
        peer.sendall(b"250 ok\r\n")

    rig.canary(mail)
    client = rig.tunnel(rig.mixed(), "allowed.test:25")
    assert client.recv(100) == b"220 ready\r\n"
    client.sendall(b"EHLO me\r\n")
    assert client.recv(100) == b"250 ok\r\n"
    client.close()
    rig.settle()
    assert rig.gate.named("ended")[0][5] == "opaque"


def test_a_gate_that_answers_late_is_waited_for(rig: Any) -> None:
    rig.canary()
    rig.gate.delay = 0.2
    client = rig.tunnel(rig.mixed())
    client.sendall(b"\0x")
    assert client.recv(10) == b"\0x"


def test_the_gate_can_see_who_left_while_it_thought(rig: Any, speak: Any) -> None:
    rig.gate.delay = 60.0
    admit, attempts = rig.gate.admit, []

    def seen(attempt: Any, done: Any) -> None:
        attempts.append(attempt)
        admit(attempt, done)

    rig.gate.admit = seen
    port = rig.mixed()
    stays = rig.client(port)
    stays.sendall(CONNECT)
    speak.wait_for(lambda: len(attempts) == 1)
    leaves = rig.client(port)
    leaves.sendall(CONNECT)
    speak.wait_for(lambda: len(attempts) == 2)
    leaves.close()
    speak.wait_for(lambda: attempts[1].abandoned)
    assert not attempts[0].abandoned


def test_a_grant_for_a_client_that_left_is_ended_and_dials_nobody(rig: Any, speak: Any) -> None:
    canary = rig.canary()
    rig.gate.delay = 60.0
    client = rig.client(rig.mixed())
    client.sendall(CONNECT)
    speak.wait_for(lambda: rig.gate.named("admit"))
    client.close()
    rig.settle()
    rig.skip(61.0)
    speak.wait_for(lambda: rig.gate.named("ended"))
    assert rig.gate.named("ended") == [("ended", "allowed.test", None, 0, 0, "abandoned")]
    assert canary.accepts == 0
    assert rig.flows == 0


@pytest.mark.attack(194)
def test_silence_after_the_200_is_closed_by_the_handshake_deadline(rig: Any) -> None:
    rig.canary()
    client = rig.tunnel(rig.mixed(handshake=60.0))
    rig.skip(61.0)
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    rig.settle()
    assert rig.gate.named("ended")[0][5] == "deadline"


@pytest.mark.attack(59)
def test_half_a_hello_is_denied_at_the_deadline(rig: Any, speak: Any) -> None:
    canary = rig.canary()
    client = rig.tunnel(rig.mixed(handshake=60.0))
    client.sendall(speak.client_hello("allowed.test")[:40])
    rig.wait_until_read(client)
    rig.skip(61.0)
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    rig.settle()
    assert rig.gate.named("refuse") == [("refuse", "allowed.test", "deadline")]
    assert canary.everything() == b""


def test_a_half_closed_first_flight_arrives_whole(rig: Any, speak: Any) -> None:
    rig.canary()
    client = rig.client(rig.transparent("allowed.test", 22))
    client.sendall(b"\x00all there is")
    client.shutdown(socket.SHUT_WR)
    assert speak.read_all(client) == b"\x00all there is"


@pytest.mark.attack(44)
def test_two_hundred_clients_that_leave_at_every_point_leave_nothing_behind(rig: Any, speak: Any) -> None:
    rig.canary()
    port = rig.mixed()
    talk = CONNECT + speak.client_hello("allowed.test")
    for number in range(200):
        client = rig.client(port)
        client.sendall(talk[: number % (len(talk) + 1)] if number % 3 else talk)
        if number % 2:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
    rig.settle()
    assert rig.gate.open == []


@pytest.mark.attack(23)
def test_a_host_header_that_differs_from_the_authority_is_refused(rig: Any, speak: Any) -> None:
    canary = rig.canary()
    client = rig.client(rig.mixed())
    client.sendall(b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: denied.test:443\r\n\r\n")
    assert speak.read_all(client).startswith(b"HTTP/1.1 400 ")
    assert canary.accepts == 0
    assert rig.gate.named("admit") == []
