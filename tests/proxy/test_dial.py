"""Dialling: recorded first, one address after another, through a parent where there is one (INV-4)."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from netsandbox_proxy.contract import Attempt, Grant, Parent
from netsandbox_proxy.dial import accepted, parent_request

CONNECT = b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n"


def test_nothing_is_dialled_when_the_record_cannot_be_written(rig: Any, speak: Any) -> None:
    """INV-5: log before act."""
    canary = rig.canary()
    rig.gate.recorded = False
    client = rig.client(rig.mixed())
    client.sendall(CONNECT)
    assert speak.read_all(client).startswith(b"HTTP/1.1 503 ")
    assert canary.accepts == 0
    assert rig.gate.named("ended")[0][5] == "unrecorded"


def test_the_next_address_is_tried_and_each_is_recorded(rig: Any) -> None:
    rig.canary()
    rig.gate.routes["allowed.test"] = ["127.0.0.2", "127.0.0.1"]
    client = rig.tunnel(rig.mixed())
    client.sendall(b"\0x")
    assert client.recv(9) == b"\0x"
    assert [call[2] for call in rig.gate.named("dialling")] == ["127.0.0.2", "127.0.0.1"]
    client.close()
    rig.settle()
    assert rig.gate.named("ended")[0][2] == "127.0.0.1"


@pytest.mark.parametrize("addresses", [[], ["127.0.0.2"], ["127.0.0.2", "127.0.0.3"], ["not an address"]])
def test_nobody_there_is_502_and_unreachable(rig: Any, speak: Any, addresses: list[str]) -> None:
    rig.canary()
    rig.gate.routes["allowed.test"] = addresses
    client = rig.client(rig.mixed())
    client.sendall(CONNECT)
    assert speak.read_all(client).startswith(b"HTTP/1.1 502 ")
    assert rig.gate.named("ended") == [("ended", "allowed.test", None, 0, 0, "unreachable")]


@pytest.fixture
def hole(rig: Any) -> Iterator[socket.socket]:
    """A listener with a full queue drops the SYN, as a black hole does."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    port = listener.getsockname()[1]
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(("127.0.0.1", port))
    rig.gate.routes["allowed.test"] = ["127.0.0.1"]
    rig.gate.ports["allowed.test"] = port
    yield listener
    for sock in (listener, *fillers):
        sock.close()


@pytest.mark.usefixtures("hole")
def test_an_address_that_never_answers_has_its_time(rig: Any, speak: Any) -> None:
    client = rig.client(rig.mixed(connect=60.0))
    client.sendall(CONNECT)
    speak.wait_for(lambda: rig.gate.named("dialling"))
    rig.skip(61.0)
    assert speak.read_all(client).startswith(b"HTTP/1.1 502 ")


def test_an_address_that_answers_later_is_waited_for(rig: Any, hole: socket.socket) -> None:
    """The queue is emptied while we wait, and the kernel repeats the SYN."""
    client = rig.client(rig.mixed(connect=60.0))
    client.sendall(CONNECT)
    hole.settimeout(20)
    peers = []
    client.settimeout(0.1)
    while True:
        try:
            assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
            break
        except TimeoutError:
            peers.append(hole.accept()[0])
    for peer in peers:
        peer.close()


def parent_that_says(answer: bytes) -> Any:
    def serve(canary: Any, peer: socket.socket) -> None:
        while b"\r\n\r\n" not in canary.heard:
            if not canary.hear(peer):
                return
        peer.sendall(answer)
        while data := canary.hear(peer):
            peer.sendall(data)

    return serve


def test_a_parent_is_asked_for_the_canonical_name_before_the_client_is_heard(rig: Any, speak: Any) -> None:
    canary = rig.canary(parent_that_says(b"HTTP/1.1 200 Fine\r\nVia: x\r\n\r\n"))
    rig.gate.ports.clear()
    rig.gate.parent = Parent([(socket.AF_INET, "127.0.0.1")], canary.port, b"Basic c2VjcmV0")
    client = rig.client(rig.mixed())
    hello = speak.client_hello("allowed.test")
    client.sendall(CONNECT + hello)
    assert speak.read_head(client).startswith(b"HTTP/1.1 200 ")
    assert client.recv(1000) == hello
    asked, _, rest = canary.heard.partition(b"\r\n\r\n")
    assert (
        asked == b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\nProxy-Authorization: Basic c2VjcmV0"
    )
    assert rest == hello


@pytest.mark.attack(43)
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 403 No\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"garbage\r\n\r\n",
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 4000 + b"\r\n",
    ],
)
def test_a_parent_that_does_not_say_2xx_is_unreachable_and_hears_nothing(rig: Any, speak: Any, answer: bytes) -> None:
    canary = rig.canary(parent_that_says(answer))
    rig.gate.parent = Parent([(socket.AF_INET, "127.0.0.1")], canary.port, None)
    client = rig.client(rig.mixed())
    client.sendall(CONNECT + b"\0secret")
    assert speak.read_all(client).startswith(b"HTTP/1.1 502 ")
    assert b"secret" not in canary.everything()


def test_what_a_parent_sends_behind_its_200_is_the_servers_first_word(rig: Any, speak: Any) -> None:
    canary = rig.canary(parent_that_says(b"HTTP/1.1 200 OK\r\n\r\n220 hello\r\n"))
    rig.gate.parent = Parent([(socket.AF_INET, "127.0.0.1")], canary.port, None)
    client = rig.tunnel(rig.mixed())
    assert client.recv(100) == b"220 hello\r\n"


def test_an_ipv6_literal_is_bracketed_for_the_parent() -> None:
    attempt = Attempt("connect", b"[2001:db8::1]", 443, ("127.0.0.1", 1))
    grant = Grant(attempt, "2001:db8::1", [], named=False, parent=Parent([], 1, None))
    assert parent_request(grant).startswith(b"CONNECT [2001:db8::1]:443 HTTP/1.1\r\n")


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1", b"HTTP/1.1 2", b"HTTP/1.1 2xx x", b"HTTP/2 200", b"HTTP/1.1 300 x"])
def test_only_a_plain_2xx_accepts(head: bytes) -> None:
    assert not accepted(head)
    assert accepted(b"HTTP/1.0 204")
