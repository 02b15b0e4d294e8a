"""Signals as a command in the foreground has them, however the tests were started."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """What `nohup make test &` makes every child ignore has its default effect on the children of tests.

    A handler that does nothing: this process ignores the signal as before, and exec gives its children the default.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
