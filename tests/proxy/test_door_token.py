"""The token of a door that others can reach: whoever does not have this session's gets nowhere, and it goes nowhere."""

from __future__ import annotations

import base64
import contextlib
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from netsandbox_proxy import forward_proxy
from netsandbox_proxy.parsers import preamble, socks5

from tests.rig.threaded_server import read_exactly

TOKEN = b"0123456789abcdef0123456789abcdef"
OTHER = b"f123456789abcdef0123456789abcdef"
NAME = b"\x05\x01\x00\x03\x0callowed.test\x01\xbb"
WRONG = [
    b"",
    TOKEN[:-1],
    TOKEN + b"0",
    TOKEN.upper(),
    b" " + TOKEN,
    TOKEN + b"\0",
    OTHER,
    "0123456789abcdéf0123456789abcdef".encode(),
    b"x" * 255,
]


def basic(password: bytes, user: bytes = b"netsandbox") -> bytes:
    return b"Proxy-Authorization: Basic " + base64.b64encode(user + b":" + password) + b"\r\n"


def connect(header: bytes = b"") -> bytes:
    return b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n" + header + b"\r\n"


def absolute(header: bytes = b"") -> bytes:
    return b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n" + header + b"Connection: close\r\n\r\n"


def login(password: bytes, user: bytes = b"netsandbox") -> bytes:
    return b"\x05\x01\x02\x01" + bytes((len(user),)) + user + bytes((len(password),)) + password


@contextlib.contextmanager
def said(rig: Any, port: int, data: bytes) -> Iterator[socket.socket]:
    client = rig.client(port)
    client.sendall(data)
    yield client


@pytest.mark.attack(182)
@pytest.mark.parametrize("request_", [connect(), absolute()])
def test_without_a_token_http_gets_407_and_the_gate_is_not_asked(rig: Any, speak: Any, request_: bytes) -> None:
    canary = rig.canary()
    with said(rig, rig.mixed(token=TOKEN), request_) as client:
        answer = speak.read_all(client)
    assert answer.startswith(b"HTTP/1.1 407 ")
    assert b"proxy-authenticate: basic" in answer.lower()
    assert TOKEN not in answer
    assert rig.gate.named("admit") == []
    assert canary.accepts == 0


@pytest.mark.attack(45)
@pytest.mark.parametrize("greeting", [b"\x05\x01\x00", b"\x05\x03\x00\x01\x80", b"\x05\x01\xff"])
def test_without_a_token_socks_gets_no_method(rig: Any, speak: Any, greeting: bytes) -> None:
    with said(rig, rig.mixed(token=TOKEN), greeting + NAME) as client:
        assert speak.read_all(client) == b"\x05\xff"
    assert rig.gate.named("admit") == []


@pytest.mark.attack(45)
def test_a_greeting_without_methods_is_hung_up_on(rig: Any, speak: Any) -> None:
    with said(rig, rig.mixed(token=TOKEN), b"\x05\x00" + NAME) as client, contextlib.suppress(ConnectionResetError):
        assert speak.read_all(client) == b""
    assert rig.gate.named("admit") == []


@pytest.mark.attack(53)
@pytest.mark.attack(184)
@pytest.mark.parametrize("password", WRONG)
def test_anothers_token_or_a_part_of_ours_opens_nothing(rig: Any, speak: Any, password: bytes) -> None:
    port = rig.mixed(token=TOKEN)
    for request in (connect, absolute):
        with said(rig, port, request(basic(password))) as client:
            assert speak.read_all(client).startswith(b"HTTP/1.1 407 ")
    with said(rig, port, login(password) + NAME) as client:
        assert speak.read_all(client) == b"\x05\x02\x01\x01"
    assert rig.gate.named("admit") == []


@pytest.mark.attack(53)
def test_the_token_as_the_users_name_opens_nothing(rig: Any, speak: Any) -> None:
    port = rig.mixed(token=TOKEN)
    with said(rig, port, connect(basic(b"", user=TOKEN))) as client:
        assert speak.read_all(client).startswith(b"HTTP/1.1 407 ")
    with said(rig, port, login(b"x", user=TOKEN) + NAME) as client:
        assert speak.read_all(client) == b"\x05\x02\x01\x01"


@pytest.mark.attack(53)
def test_two_credentials_are_none(rig: Any, speak: Any) -> None:
    """Which of them counts would be a matter of taste."""
    with said(rig, rig.mixed(token=TOKEN), connect(basic(OTHER) + basic(TOKEN))) as client:
        assert not speak.read_all(client).startswith(b"HTTP/1.1 200 ")
    assert rig.gate.named("admit") == []


@pytest.mark.attack(184)
def test_two_sessions_do_not_open_each_others_doors(rig: Any, speak: Any) -> None:
    rig.canary()
    tokens = [os.urandom(16).hex().encode() for _ in range(2)]
    ports = [rig.mixed(token=token) for token in tokens]
    for number in (0, 1):
        with said(rig, ports[number], connect(basic(tokens[1 - number]))) as client:
            assert speak.read_all(client).startswith(b"HTTP/1.1 407 ")
        with said(rig, ports[number], connect(basic(tokens[number]))) as client:
            assert speak.read_head(client).startswith(b"HTTP/1.1 200 ")


@pytest.mark.attack(53)
@pytest.mark.parametrize("request_", [connect(), connect(basic(b"")), login(b"") + NAME])
def test_a_door_whose_token_was_lost_opens_to_nobody(rig: Any, speak: Any, request_: bytes) -> None:
    """INV-1: an empty token is no token, not an open proxy."""
    with said(rig, rig.mixed(token=b""), request_) as client:
        speak.read_all(client)
    assert rig.gate.named("admit") == []


def test_the_token_opens_every_way_and_goes_no_further(rig: Any, speak: Any) -> None:
    canary = rig.canary(speak.answer_http)
    port = rig.mixed(token=TOKEN)
    with said(rig, port, absolute(basic(TOKEN))) as client:
        assert speak.read_all(client).startswith(b"HTTP/1.1 200 ")
    assert b"authorization" not in canary.heard.lower()
    with said(rig, port, connect(basic(TOKEN))) as client:
        assert speak.read_head(client).startswith(b"HTTP/1.1 200 ")
    with said(rig, port, login(TOKEN) + NAME) as client:
        assert read_exactly(client, 4) == b"\x05\x02\x01\x00"
        assert read_exactly(client, 10)[:2] == b"\x05\x00"


@pytest.mark.attack(184)
def test_what_the_gate_is_told_never_holds_the_token(rig: Any, speak: Any) -> None:
    """The gate writes the log."""
    rig.canary(speak.answer_http)
    port = rig.mixed(token=TOKEN)
    for request in (absolute(basic(TOKEN)), connect(basic(TOKEN + b"x")), login(TOKEN + b"x") + NAME):
        with said(rig, port, request) as client:
            speak.read_all(client)
    told = repr(rig.gate.calls).encode()
    assert TOKEN not in told
    assert base64.b64encode(b"netsandbox:" + TOKEN)[:-4] not in told


@pytest.mark.attack(184)
def test_ten_thousand_guesses_open_nothing() -> None:
    """Without sockets, for speed; each guess is also a connection and a record."""
    for _ in range(10_000):
        reader = socks5.Socks5Reader(TOKEN)
        reader.feed(login(os.urandom(16).hex().encode()))
        assert reader.failed


@pytest.mark.attack(53)
@pytest.mark.parametrize("module", [forward_proxy, socks5, preamble])
def test_tokens_are_compared_in_constant_time(
    rig: Any, speak: Any, monkeypatch: pytest.MonkeyPatch, module: Any
) -> None:
    """By the interpreter's own comparison, and by no other before it."""
    compared: list[tuple[bytes, bytes]] = []

    def compare(presented: bytes, token: bytes) -> bool:
        compared.append((presented, token))
        return False

    monkeypatch.setattr(module, "compare_digest", compare)
    requests = {
        forward_proxy: connect(basic(TOKEN)),
        socks5: login(TOKEN) + NAME,
        preamble: b"\1\4" + bytes(18) + bytes.fromhex(TOKEN.decode()),
    }
    request = requests[module]
    with said(rig, rig.mixed(token=TOKEN), request) as client:
        speak.read_all(client)
    assert compared == [(TOKEN, TOKEN)]
    assert rig.gate.named("admit") == []


def test_where_nobody_else_comes_no_token_is_asked_for(rig: Any, speak: Any) -> None:
    """Linux: the door is in the session's own network."""
    rig.canary()
    with said(rig, rig.mixed(), connect()) as client:
        assert speak.read_head(client).startswith(b"HTTP/1.1 200 ")
