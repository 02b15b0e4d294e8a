"""A line for what takes long, and only where somebody looks."""

from __future__ import annotations

import sys
import threading
from io import StringIO

import pytest

from netsandbox.config.profiles.progress import Progress


class Screen(StringIO):
    """A terminal, or not, that tells when something was written."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal
        self.written = threading.Event()

    def isatty(self) -> bool:
        return self._terminal

    def flush(self) -> None:
        self.written.set()


def timers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]


def test_what_takes_long_is_told_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Screen(terminal=True))
    with Progress("asking npm", patience=0):
        assert screen.written.wait(20)
    assert screen.getvalue() == "netsandbox: asking npm …\n"


def test_what_is_quick_is_not_told_and_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Screen(terminal=True))
    with Progress("asking npm", patience=600):
        (timer,) = timers()
        assert timer.is_alive()
    assert not timer.is_alive()
    assert screen.getvalue() == ""


@pytest.mark.parametrize("stream", [None, Screen(terminal=False)])
def test_elsewhere_nothing_is_told(monkeypatch: pytest.MonkeyPatch, stream: Screen | None) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("asking npm", patience=600):
        assert timers() == []
