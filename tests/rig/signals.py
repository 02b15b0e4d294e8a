"""Signals as a command in the foreground has them, however the tests were started."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def unignored_signals() -> Iterator[None]:
    """What `nohup make test &` makes every child ignore has its default effect on the children of this test.

    A handler that does nothing: this process ignores the signal as before, and exec gives its children the default.
    """
    numbers = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
    ignored = [number for number in numbers if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
