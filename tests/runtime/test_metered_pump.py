"""A pump with a budget: whatever comes, and however slow the sink is, no byte beyond the limit passes."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.budgets import Account, Budgets, Meter, parse_budget
from netsandbox.runtime import pump
from netsandbox.runtime.loop import Loop
from netsandbox.runtime.metered_pump import MeteredPump
from netsandbox.runtime.pump import PipePool
from netsandbox.runtime.relay import Relay
from netsandbox.runtime.stream import Stream, ignore_events


class Scene:
    """Two socket pairs with a relay between them; the test is client and server."""

    def __init__(self, limit: int) -> None:
        self.loop, self.pipes = Loop(), PipePool()
        inner, self.client = socket.socketpair()
        outer, self.server = socket.socketpair()
        for sock in (inner, outer, self.client, self.server):
            sock.setblocking(False)
        meter = Budgets([parse_budget(f"up={limit}B", "")]).meter("a.test", 443)
        assert meter is not None
        self.meter: Meter = meter
        self.streams = [Stream(self.loop, sock, ignore_events) for sock in (inner, outer)]
        self.relay = Relay(*self.streams, self.pipes, meter=meter)
        self.spent = 0
        self.relay.on_spent = self._on_spent

    def _on_spent(self) -> None:
        self.spent += 1
        self.close_relay()

    def close_relay(self) -> None:
        self.relay.close()
        for stream in self.streams:
            stream.close()

    @property
    def account(self) -> Account:
        return self.meter.accounts[0]

    def turn(self) -> None:
        self.loop.call_later(0.002, self.loop.stop)
        self.loop.run()

    def read(self) -> int:
        count = 0
        try:
            while data := self.server.recv(1 << 20):
                count += len(data)
        except BlockingIOError:
            pass
        return count

    def close(self) -> None:
        self.close_relay()
        for end in (self.client, self.server, self.pipes, self.loop):
            end.close()


@contextmanager
def scene(limit: int) -> Iterator[Scene]:
    made = Scene(limit)
    try:
        yield made
    finally:
        made.close()


def flow(limit: int, sizes: list[int], reads: Callable[[int], bool]) -> tuple[int, Scene]:
    with scene(limit) as made:
        made.relay.start()
        got = 0
        for number, size in enumerate(sizes):
            sent = 0
            while sent < size and not made.spent:
                try:
                    sent += made.client.send(bytes(size - sent))
                except BlockingIOError:
                    got += made.read()
                except OSError:
                    break
                made.turn()
            if reads(number):
                got += made.read()
        for _ in range(50):
            made.turn()
            got += made.read()
        return got, made


@given(st.integers(1, 300_000), st.lists(st.integers(1, 150_000), min_size=1, max_size=4), st.booleans())
def test_what_passes_is_what_came_up_to_the_limit(limit: int, sizes: list[int], reads: bool) -> None:
    got, made = flow(limit, sizes, lambda _: reads)
    assert got == min(limit, sum(sizes)) == made.account.up
    assert made.spent == (1 if sum(sizes) > limit else 0)


def test_without_splice_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump, "_splice", None)
    for sizes in ([1000, 300_000], [250_000]):
        got, made = flow(250_000, sizes, lambda _: False)
        assert got == 250_000 == made.account.up
        assert made.spent == (sum(sizes) > 250_000)


def test_bytes_that_wait_for_the_sink_are_checked_again_when_they_go() -> None:
    with scene(400_000) as made:
        up = made.relay.up
        assert isinstance(up, MeteredPump)
        up.push(bytes(1_000_000))  # more than the sink takes at once
        assert (up.blocked, up.spent) == (True, False)
        before = made.account.up
        assert 0 < before < 400_000
        made.account.up = 400_000  # another connection used the rest
        made.read()
        up.flush()
        assert (up.moved, up.spent) == (before, True)
