"""Integration tests need the kernel's own boundary: say plainly when this machine does not have it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

UNSHARE = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "true"]


def _missing() -> str | None:
    if sys.platform != "linux":
        return None
    try:
        tried = subprocess.run(UNSHARE, capture_output=True, text=True, check=False, timeout=10)
    except FileNotFoundError:
        return "unshare is missing (package util-linux)"
    return None if tried.returncode == 0 else f"this machine gives no user namespaces: {tried.stderr.strip()}"


@pytest.fixture(scope="session")
def user_namespaces() -> None:
    """Skips what cannot run without unprivileged user namespaces."""
    missing = _missing()
    if missing is not None:
        pytest.skip(missing)


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
