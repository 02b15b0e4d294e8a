"""One exchange with a budget. `tests/proxy/test_http_stage_budget.py` has those of real doors."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from netsandbox.policy.budgets import Account, Budgets, parse_budget
from netsandbox.runtime.http.body import Framing
from netsandbox.runtime.http.errors import ProtocolError
from netsandbox.runtime.http.metered_exchange import MeteredExchange
from netsandbox.runtime.http.request import ForwardRequest
from netsandbox.runtime.loop import Loop
from netsandbox.runtime.pump import PipePool
from netsandbox.runtime.stream import Stream, ignore_events

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n"
REQUEST = ForwardRequest(b"a", 80, HEAD, b"POST", Framing("length", 500_000), False, True)


class Scene:
    def __init__(self) -> None:
        self.loop, self.pipes = Loop(), PipePool()
        inner, self.client = socket.socketpair()
        outer, self.server = socket.socketpair()
        for sock in (inner, outer):
            sock.setblocking(False)
        self.streams = [Stream(self.loop, sock, ignore_events) for sock in (inner, outer)]

    def exchange(self, text: str) -> tuple[MeteredExchange, Account]:
        meter = Budgets([parse_budget(text, "--budget")]).meter("a.test", 80)
        assert meter is not None
        return MeteredExchange(*self.streams, REQUEST, self.pipes, meter), meter.accounts[0]

    def close(self) -> None:
        for end in (*self.streams, self.client, self.server, self.pipes, self.loop):
            end.close()


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


@pytest.mark.parametrize("text", [f"up={len(HEAD) - 1}B", "up=1B"])
def test_a_head_that_does_not_fit_is_not_begun(scene: Scene, text: str) -> None:
    exchange, account = scene.exchange(text)
    with pytest.raises(ProtocolError, match="budget: --budget up="):
        exchange.start(b"")
    assert (exchange.up, account.up) == (0, 0)


def test_a_body_passes_up_to_the_limit(scene: Scene) -> None:
    exchange, account = scene.exchange("up=1kB")
    assert exchange.start(b"x" * 10) == b""
    with pytest.raises(ProtocolError, match="budget"):
        exchange.feed_body(b"x" * 5000)
    assert exchange.up == account.up == 1000
    assert len(scene.server.recv(9999)) == 1000


def test_bytes_that_wait_are_checked_again_and_their_end_is_a_fault(scene: Scene) -> None:
    exchange, account = scene.exchange("up=450kB")
    exchange.start(b"x" * 490_000)
    assert exchange.to_server
    assert exchange.fault is None
    sent = account.up
    account.up = 450_000  # another connection used the rest
    scene.server.recv(1 << 20)
    exchange.flush_up()
    assert exchange.fault is not None
    assert exchange.fault.reason == "budget"
    assert exchange.up == sent


def test_a_response_passes_up_to_the_limit(scene: Scene) -> None:
    exchange, account = scene.exchange("down=50B")
    exchange.start(b"")
    scene.server.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b"y" * 100)
    exchange.read_answer()
    assert exchange.fault is not None
    assert (exchange.fault.reason, exchange.fault.status) == ("budget", 403)
    assert len(scene.client.recv(999)) == 50 == account.down == exchange.down


def test_a_server_that_reads_no_more_is_no_budget(scene: Scene) -> None:
    exchange, _ = scene.exchange("up=1kB")
    exchange.start(b"")
    scene.server.close()
    exchange.feed_body(b"x" * 5000)
    assert exchange.tainted
