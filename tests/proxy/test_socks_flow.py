"""SOCKS5 on the mixed door."""

from __future__ import annotations

import socket
from typing import Any

import pytest

REQUEST = b"\x05\x01\x00\x03\x0callowed.test\x01\xbb"
OK = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"


def test_a_named_destination_is_reached(rig: Any) -> None:
    rig.canary()
    client = rig.client(rig.mixed())
    client.sendall(b"\x05\x01\x00")
    assert client.recv(2) == b"\x05\x00"
    client.sendall(REQUEST)
    assert client.recv(10) == OK
    client.sendall(b"\0x")
    assert client.recv(9) == b"\0x"
    assert rig.gate.named("admit") == [("admit", "socks5", b"allowed.test", 443, None)]


@pytest.mark.attack(50)
def test_all_in_one_packet_with_payload_is_answered_in_order_and_judged(rig: Any, speak: Any) -> None:
    canary = rig.canary()
    client = rig.client(rig.mixed())
    client.sendall(b"\x05\x01\x00" + REQUEST + speak.client_hello("denied.test"))
    assert speak.read_all(client) == b"\x05\x00" + OK
    assert canary.everything() == b""
    assert rig.gate.named("refuse") == [("refuse", "allowed.test", "sni-mismatch")]


@pytest.mark.attack(50)
def test_one_byte_per_packet_works(rig: Any) -> None:
    rig.canary()
    client = rig.client(rig.mixed())
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in b"\x05\x01\x00" + REQUEST:
        client.send(bytes((byte,)))
    answer = b""
    while len(answer) < 12:
        answer += client.recv(12)
    assert answer == b"\x05\x00" + OK


@pytest.mark.attack(47)
def test_a_denied_destination_gets_code_2_and_an_absent_one_code_5(rig: Any, speak: Any) -> None:
    port = rig.mixed()
    client = rig.client(port)
    client.sendall(b"\x05\x01\x00\x05\x01\x00\x01\xc0\x00\x02\x01\x01\xbb")
    assert speak.read_all(client)[3] == 2
    rig.canary()
    rig.gate.routes["allowed.test"] = ["127.0.0.2"]
    client = rig.client(port)
    client.sendall(b"\x05\x01\x00" + REQUEST)
    assert speak.read_all(client)[3] == 5


@pytest.mark.attack(48)
@pytest.mark.parametrize("command", [2, 3])
def test_bind_and_udp_are_refused_with_code_7(rig: Any, speak: Any, command: int) -> None:
    client = rig.client(rig.mixed())
    client.sendall(b"\x05\x01\x00\x05" + bytes((command,)) + REQUEST[2:])
    assert speak.read_all(client)[3] == 7
    assert rig.gate.named("admit") == []
    assert rig.gate.named("reject")[0][:3] == ("reject", "socks5", "unsupported")


@pytest.mark.attack(45)
def test_no_authentication_is_not_enough_where_a_token_is_required(rig: Any, speak: Any) -> None:
    client = rig.client(rig.mixed(token=b"t" * 32))
    client.sendall(b"\x05\x01\x00" + REQUEST)
    assert speak.read_all(client) == b"\x05\xff"
    assert rig.gate.named("admit") == []


@pytest.mark.attack(194)
def test_a_greeting_and_then_silence_is_closed_at_the_deadline(rig: Any, speak: Any) -> None:
    client = rig.client(rig.mixed(head=60.0))
    client.sendall(b"\x05\x01\x00")
    assert client.recv(2) == b"\x05\x00"
    rig.skip(61.0)
    assert speak.read_all(client) == b""
    rig.settle()
    assert rig.gate.named("reject")[0][2] == "deadline"
