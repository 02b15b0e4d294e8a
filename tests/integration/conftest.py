"""What integration tests share besides the rig."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

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


@pytest.fixture
def origin(canary: Any, authority: Any) -> tuple[Any, list[str]]:
    """An allowed origin and the options that lead to it."""
    good = canary.http(body=b"reached")
    authority.answer("*.test", "127.0.0.1")
    options = ["--allow-domain", f"allowed.test:{good.port}", "--allow-address", f"127.0.0.1:{good.port}"]
    return good, [*options, "--upstream-dns", authority.address]
