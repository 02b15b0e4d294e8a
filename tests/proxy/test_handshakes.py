"""SOCKS5 on the mixed door."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from tests.rig.threaded_server import read_exactly

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


# Connections of programs that know of no proxy, at a mixed door that has a token.

RAW = bytes(range(16))
TOKEN = RAW.hex().encode()
ALLOWED, DENIED = "198.18.0.1", "198.18.0.2"


def said(address: str = ALLOWED, port: int = 443, token: bytes = RAW) -> bytes:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    packed = socket.inet_pton(family, address).ljust(16, b"\0")
    return bytes((1, 6 if ":" in address else 4)) + port.to_bytes(2, "big") + packed + token


def is_reset(client: socket.socket) -> bool:
    """Not an end of the stream, which a program could take for an empty answer."""
    try:
        client.recv(1)
    except ConnectionResetError:
        return True
    return False


@pytest.mark.parametrize("address", [ALLOWED, "2001:db8::1"])
def test_an_allowed_destination_is_reached_and_a_denied_one_is_reset(rig: Any, address: str) -> None:
    allowed, denied = rig.canary(name=address), rig.canary(name="elsewhere")
    port = rig.mixed(token=TOKEN)
    client = rig.client(port)
    client.sendall(said(address) + b"\0hello")
    assert read_exactly(client, 6) == b"\0hello"
    refused = rig.client(port)
    refused.sendall(said(DENIED) + b"\0secret")
    assert is_reset(refused)
    assert rig.gate.named("admit") == [
        ("admit", "transparent", address.encode(), 443, address),
        ("admit", "transparent", DENIED.encode(), 443, DENIED),
    ]
    assert (allowed.accepts, denied.accepts) == (1, 0)
    assert allowed.heard == b"\0hello"


def test_the_preamble_goes_no_further_however_it_comes(rig: Any) -> None:
    canary = rig.canary(name=ALLOWED)
    client = rig.client(rig.mixed(token=TOKEN))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in said() + b"\0x":
        client.send(bytes((byte,)))
    assert read_exactly(client, 2) == b"\0x"
    client.shutdown(socket.SHUT_WR)
    assert client.recv(1) == b""
    assert canary.everything() == b"\0x"


def test_a_server_that_speaks_first_is_heard(rig: Any) -> None:
    def greet(canary: Any, peer: socket.socket) -> None:
        peer.sendall(b"220 ready\r\n")
        canary.hear(peer)

    rig.canary(greet, name=ALLOWED)
    client = rig.client(rig.mixed(token=TOKEN))
    client.sendall(said())
    assert read_exactly(client, 11) == b"220 ready\r\n"


@pytest.mark.attack(182)
@pytest.mark.attack(184)
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (said(token=RAW[::-1]), "not-allowed"),
        (said(token=bytes(16)), "not-allowed"),
        (b"\1" * 36, "not-allowed"),
        (b"\1\5" + said()[2:], "malformed"),
        (said("::ffff:198.18.0.1"), "malformed"),
    ],
)
def test_what_is_none_is_reset_recorded_and_asked_of_nobody(rig: Any, data: bytes, reason: str) -> None:
    canary = rig.canary(name=ALLOWED)
    port = rig.mixed(token=TOKEN)
    client = rig.client(port)
    client.sendall(data + b"GET / HTTP/1.1\r\n\r\n")
    assert is_reset(client)
    assert [call[1:3] for call in rig.gate.named("reject")] == [("transparent", reason)]
    assert rig.gate.named("admit") == []
    assert canary.accepts == 0
    twin = rig.client(port)
    twin.sendall(said() + b"\0x")
    assert read_exactly(twin, 2) == b"\0x"
    assert canary.accepts == 1


@pytest.mark.attack(194)
@pytest.mark.parametrize("length", [1, 35])
def test_a_preamble_that_does_not_end_is_reset_at_the_deadline(rig: Any, length: int) -> None:
    client = rig.client(rig.mixed(token=TOKEN, head=60.0))
    client.sendall(said()[:length])
    rig.wait_until_read(client)
    rig.skip(61.0)
    assert is_reset(client)
    rig.settle()
    assert [call[1:3] for call in rig.gate.named("reject")] == [("transparent", "deadline")]
    assert rig.gate.named("admit") == []


def test_whoever_leaves_within_it_is_forgotten(rig: Any) -> None:
    client = rig.client(rig.mixed(token=TOKEN))
    client.sendall(said()[:20])
    client.close()
    rig.settle()
    assert rig.gate.calls == []


@pytest.mark.attack(53)
@pytest.mark.parametrize("token", [None, b""])
def test_where_there_is_no_token_there_is_no_preamble(rig: Any, token: bytes | None) -> None:
    """On Linux the kernel redirects; and a token that was lost opens nothing (INV-1)."""
    canary = rig.canary(name=ALLOWED)
    client = rig.client(rig.mixed(token=token))
    client.sendall(said(token=bytes(16)))
    assert is_reset(client)
    wanted = ("mixed", "unsupported") if token is None else ("transparent", "not-allowed")
    assert [call[1:3] for call in rig.gate.named("reject")] == [wanted]
    assert canary.accepts == 0


@pytest.mark.attack(184)
def test_two_sessions_do_not_open_each_others_doors(rig: Any) -> None:
    rig.canary(name=ALLOWED)
    tokens = [bytes((number,)) * 16 for number in (1, 2)]
    ports = [rig.mixed(token=token.hex().encode()) for token in tokens]
    for number in (0, 1):
        stranger = rig.client(ports[number])
        stranger.sendall(said(token=tokens[1 - number]))
        assert is_reset(stranger)
        own = rig.client(ports[number])
        own.sendall(said(token=tokens[number]) + b"\0x")
        assert read_exactly(own, 2) == b"\0x"


@pytest.mark.attack(184)
def test_what_the_gate_is_told_never_holds_the_token(rig: Any) -> None:
    port = rig.mixed(token=TOKEN)
    for data in (said(DENIED), said(token=RAW[::-1]), b"\1\5" + said()[2:]):
        client = rig.client(port)
        client.sendall(data)
        assert is_reset(client)
    told = repr(rig.gate.calls)
    for secret in (RAW, RAW[::-1]):
        assert secret.hex() not in told
        assert repr(secret)[2:-1] not in told
