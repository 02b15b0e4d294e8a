"""`pytest --netsandbox`: the whole command is run again in a session, and its status is ours."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

from netsandbox.api.process import Popen
from netsandbox.errors import NetsandboxError
from netsandbox.runtime.inherited import FORWARDED, exit_with
from netsandbox.testing.sandbox_of_tests import DENIALS, denial_texts, sandbox_of


def run_again(config: pytest.Config) -> NoReturn:
    """Run the command that started this process in a session, and exit as it does.

    A denial that no test is blamed for, such as one of a process that outlived its test, fails the run.
    """
    with tempfile.TemporaryDirectory(prefix="netsandbox-pytest-") as folder:
        try:
            status = _status(config, folder)
        except NetsandboxError as error:
            raise pytest.UsageError(f"netsandbox: {error}") from None
        told = denial_texts(_lines(folder))
    if status == 0 and told:
        print(*told, "netsandbox: no test is to blame for it, so the run has failed", sep="\n", file=sys.stderr)
        status = int(pytest.ExitCode.TESTS_FAILED)
    sys.stderr.flush()
    exit_with(status)  # at once: `coverage run` would write its own data over those of the tests


def _status(config: pytest.Config, folder: str) -> int:
    box = sandbox_of(config, (), folder)
    sys.stdout.flush()
    with box.popen([sys.executable, *sys.orig_argv[1:]]) as process, _passed_signals(process):
        return process.wait()


def _lines(folder: str) -> list[str]:
    return Path(folder, DENIALS).read_text("ascii").splitlines()


@contextmanager
def _passed_signals(process: Popen[Any]) -> Iterator[None]:
    """Signals that we get are meant for the tests. A terminal sends its own to them too."""
    from_terminal = (signal.SIGINT, signal.SIGQUIT) if _in_foreground() else ()
    previous = {
        number: signal.signal(number, signal.SIG_IGN if number in from_terminal else _sender(process))
        for number in FORWARDED
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _sender(process: Popen[Any]) -> Any:
    return lambda number, frame: process.send_signal(number)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
