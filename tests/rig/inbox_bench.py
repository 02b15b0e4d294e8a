"""An inbox with a log, a clock and timers that a test turns, and one list of everything that happens, in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from netsandbox_proxy.contract import Attempt

from netsandbox.session.approvals.inbox import Inbox
from netsandbox.session.approvals.reply import APPROVE, DENY, SESSION, Reply, written
from tests.rig.gate_bench import SOURCE, Log


class Timer:
    def __init__(self, due: float, callback: Callable[[], None]) -> None:
        self.due = due
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class InboxBench:
    """`answers` are the reasons that waiting connections got, with details; `lines` what the user was told."""

    def __init__(self, wait: int = 60, log: Log | None = None) -> None:
        self.story: list[Any] = [] if log is None else log.story
        self.log = log or Log(self.story)
        self.now = 0.0
        self.timers: list[Timer] = []
        self.lines: list[str] = []
        self.answers: list[tuple[str, str | None]] = []
        self.inbox = Inbox(self.log, wait, clock=lambda: self.now, later=self._later, notify=self.lines.append)  # type: ignore[arg-type]

    def _later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        self.timers.append(Timer(self.now + seconds, callback))
        return self.timers[-1]

    def pass_time(self, seconds: float = 0) -> None:
        """Everything that is due by then happens, in order."""
        self.now += seconds
        while due := sorted((t for t in self.timers if t.callback and t.due <= self.now), key=lambda t: t.due):
            callback, due[0].callback = due[0].callback, None
            assert callback is not None
            callback()

    def ask(self, host: str = "asked.test", port: int = 443, by: tuple[int, str] | None = None) -> Attempt:
        attempt = Attempt("connect", host.encode(), port, SOURCE)
        reason = self.inbox.ask((host, port), attempt, by, self._answered)
        if reason is not None:
            self.answers.append((reason, "at once"))
        return attempt

    def ask_file(self, path: str, operation: str = "read", secret: str | None = None) -> None:
        attempt = Attempt("connect", b"", 1, SOURCE)
        reason = self.inbox.ask((path, operation), attempt, (7, "/bin/cat"), self._answered, secret)
        if reason is not None:
            self.answers.append((reason, "at once"))

    def _answered(self, reason: str, detail: str | None) -> None:
        self.story.append(("answered", reason))
        self.answers.append((reason, detail))

    @property
    def number(self) -> int:
        """Of the newest question."""
        found = self.inbox.status()[-1]["id"]
        assert isinstance(found, int)
        return found

    def approve(self, number: int | None = None, scope: str = SESSION, ttl: int = 0, above: int = 0) -> bytes | None:
        chosen = self.number if number is None else number
        return self.inbox.handle_reply(written(Reply(APPROVE, chosen, scope, ttl, above)), 4711, 1000)

    def deny(self, number: int | None = None, above: int = 0) -> bytes | None:
        chosen = self.number if number is None else number
        return self.inbox.handle_reply(written(Reply(DENY, chosen, above=above)), 4711, 1000)

    @property
    def approvals(self) -> list[dict[str, Any]]:
        return [fields for event, fields in self.story if event == "approval"]
