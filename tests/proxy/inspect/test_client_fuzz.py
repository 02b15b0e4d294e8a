"""Mutated messages of a worker that is taken over: the supervisor takes only what it can check, and never fails
(attack 240)."""

from __future__ import annotations

import json
import socket
from random import Random
from typing import Any

from netsandbox_proxy.inspect import channel
from netsandbox_proxy.inspect.client import OUTCOMES, REASONS, EngineClient, WorkerSettings

from netsandbox.policy.inspection import HttpRequest
from netsandbox.runtime.loop import IN, Loop
from tests.rig.fuzzing import FUZZ, fuzz

MESSAGES: list[dict[str, Any]] = [
    {"kind": "ready"},
    {"kind": "pong"},
    {"kind": "ask", "id": 1, "n": 1, "method": "GET", "target": "/ok?x=%20", "unclear": False},
    {"kind": "request", "id": 1, "n": 1, "status": 200, "up": 0, "down": 12, "ms": 3},
    {"kind": "dial", "id": 1, "n": 2},
    {"kind": "refused", "id": 1, "reason": "malformed", "detail": "a head without an end"},
    {"kind": "ended", "id": 1, "up": 1, "down": 2, "outcome": "http"},
    {"kind": "judged", "id": 1, "n": 1, "allow": True},
]
SEEDS = [json.dumps(each, separators=(",", ":")).encode() for each in (*MESSAGES, MESSAGES)]
TOKENS = [
    b'"', b"{", b"}", b"[", b"]", b",", b":", b"null", b"true", b"false", b"-1", b"1e999", b"NaN",
    b"9007199254740993", b'""', b"\\u0000", b"\\ud800", b"\n", b"\xff", b'"id":1', b'"id":2', b'"n":1',
    b'"kind":"ask"', b'"kind":"ended"', b"1.5", b"0", b"[" * 3000, b'"kind":"spawn"', b"\\r\\n",
]  # fmt: skip


class StrictFlow:
    """Fails if it gets anything that was not checked."""

    def __init__(self) -> None:
        self.is_over = False
        self.open: set[int] = set()

    def asked(self, n: int, request: HttpRequest) -> dict[str, object]:
        assert type(n) is int
        assert all(text.isascii() and text.isprintable() for text in (request.method, request.target))
        if n in self.open:
            raise channel.ChannelError("twice")
        self.open.add(n)
        return {"allow": False, "status": 403, "reason": "request-denied", "text": "no"}

    def answered(self, n: int, status: int, sizes: tuple[int, int], milliseconds: int) -> None:
        if n not in self.open:
            raise channel.ChannelError("not asked about")
        assert all(type(each) is int and each >= 0 for each in (n, status, *sizes, milliseconds))

    def dial(self, n: int) -> None:
        assert type(n) is int

    def refused(self, reason: str, detail: str) -> None:
        assert reason in REASONS
        assert detail.isprintable()

    def ended(self, up: int, down: int, outcome: str) -> None:
        assert outcome in OUTCOMES
        self.is_over = True

    def lost(self) -> None:
        self.is_over = True


class Bench:
    """A supervisor's client whose worker is the test."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.control, self._other = channel.pair()
        self.pid = 0
        process: Any = self
        self.client = EngineClient(self.loop, process, WorkerSettings(b"", 0, 60))
        self._pair = socket.socketpair()
        self._worker: socket.socket | None = None
        self._flow = StrictFlow()
        self._flow.is_over = True

    def receive(self, data: bytes) -> None:
        if self._flow.is_over:
            self._begin()
        assert self._worker is not None
        self._worker.send(data)
        self.client._on_ready(IN)
        self._drain()

    def _begin(self) -> None:
        self.client._lose()
        self.client._count = 0
        if self._worker is not None:
            self._worker.close()
        self._flow = StrictFlow()
        flow: Any = self._flow
        first, second = (each.fileno() for each in self._pair)
        assert self.client.open(flow, "allowed.test", 443, b"", (first, second)) == 1
        while (received := channel.receive(self._other)) is not None and received[0] == [{"kind": "end"}]:
            pass  # of the worker before
        assert received is not None
        self._worker = socket.socket(fileno=received[1][0])
        self._worker.setblocking(False)
        channel.close_all(received[1][1:])
        self._drain()

    def _drain(self) -> None:
        """What the supervisor answers."""
        assert self._worker is not None
        try:
            while (received := channel.receive(self._worker)) is not None:  # type: ignore[arg-type]
                assert {each["kind"] for each in received[0]} <= {"open", "judged", "close", "ping"}
                channel.close_all(received[1])
        except BlockingIOError:
            pass

    def close(self) -> None:
        self.client._lose()
        self.loop.close()
        for sock in (self.control, self._other, *self._pair, self._worker):
            if sock is not None:
                sock.close()


@FUZZ
def test_messages_of_a_worker() -> None:
    bench = Bench()

    def check(data: bytes, random: Random) -> None:
        bench.receive(data[:60000] or b" ")

    try:
        fuzz(60, SEEDS, TOKENS, check)
    finally:
        bench.close()
