"""A gate that follows a script and writes down every call, for doors that run in a thread of their own."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from netsandbox_proxy.contract import Attempt, Grant, Parent, Refusal

from netsandbox.policy.budgets import Budgets
from netsandbox.policy.inspection import HttpRequest, RequestEnd
from netsandbox.runtime.loop import Loop

Call = tuple[Any, ...]


class ScriptedGate:
    """Names are reached on 127.0.0.1 by `routes`; what has no route is refused."""

    def __init__(self, loop: Loop, catch_up: Callable[[], None]) -> None:
        self.loop = loop
        self.routes: dict[str, list[str]] = {}
        self.ports: dict[str, int] = {}
        self.inspected: set[str] = set()
        self.budgets: Budgets | None = None
        self.parent: Parent | None = None
        self.delay: float | None = None
        self.recorded = True
        self.open: list[Grant] = []  # granted and not ended yet
        self._calls: list[Call] = []
        self._catch_up = catch_up

    @property
    def calls(self) -> list[Call]:
        """Every call so far; the turn in which the door answered a client has ended before they are read."""
        self._catch_up()
        return self._calls

    def named(self, kind: str) -> list[Call]:
        return [call for call in self.calls if call[0] == kind]

    def decide(self, attempt: Attempt) -> Grant | Refusal:
        host = attempt.host.decode("ascii", "backslashreplace").lower()
        if host in self.routes:
            addresses = [(int(socket.AF_INET6 if ":" in a else socket.AF_INET), a) for a in self.routes[host]]
            grant = Grant(attempt, host, addresses, named=not host[0].isdigit(), parent=self.parent)
            grant.port = self.ports.get(host, attempt.port)
            grant.inspection = 1 if host in self.inspected else None
            grant.meter = None if self.budgets is None else self.budgets.meter(host, attempt.port)
            self.open.append(grant)
            return grant
        return Refusal(host, attempt.port, "not-allowed", f"--allow-domain {host} would allow it.")

    def admit(self, attempt: Attempt, done: Callable[[Grant | Refusal], None]) -> None:
        self._calls.append(("admit", attempt.door, attempt.host, attempt.port, attempt.address))
        if self.delay is None:
            return done(self.decide(attempt))
        self.loop.call_later(self.delay, lambda: done(self.decide(attempt)))
        return None

    def dialling(self, grant: Grant, address: str) -> bool:
        self._calls.append(("dialling", grant.host, address))
        return self.recorded

    def judge(self, grant: Grant, number: int, request: HttpRequest) -> Refusal | None:
        self._calls.append(("judge", number, request))
        if request.target.startswith("/ok"):
            return None
        return Refusal(grant.host, grant.port, "request-denied", "not this one")

    def answered(self, grant: Grant, end: RequestEnd) -> None:
        self._calls.append(("answered", end.number, end.request.method, end.request.target, end.status))

    def refuse(self, grant: Grant, reason: str, detail: str | None = None) -> Refusal:
        self._calls.append(("refuse", grant.host, reason))
        return Refusal(grant.host, grant.port, reason, "")

    def reject(self, door: str, reason: str, detail: str, source: tuple[str, int]) -> None:
        self._calls.append(("reject", door, reason, detail, source))

    def ended(self, grant: Grant, address: str | None, up: int, down: int, *rest: Any) -> None:
        self._calls.append(("ended", grant.host, address, up, down, rest[1]))
        self.open.remove(grant)  # exactly once, or this fails
