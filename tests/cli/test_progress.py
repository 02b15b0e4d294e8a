"""A line while something takes long: on a terminal only, and erased at the end."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

import pytest

LONG = """
import sys
from netsandbox.cli import progress
progress.DELAY = {delay}
with progress.progress("asking \\x1b[1m" + "somebody " * 30):
    {body}
print("done", file=sys.stderr)
"""


def shown(body: str, *, terminal: bool, delay: float = 0.01, term: str = "xterm") -> bytes:
    """What stands on standard error. *body* can wait with input() until something is written there."""
    reading, writing = os.openpty() if terminal else os.pipe()
    code = LONG.format(delay=delay, body=body)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": term}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stderr=writing, env=environment
    ) as process:
        os.close(writing)
        assert process.stdin is not None
        text = b""
        if "input()" in body:
            text = os.read(reading, 4096)
            process.stdin.write(b"\n")
        process.stdin.close()
        with suppress(OSError):  # how a terminal ends
            while more := os.read(reading, 4096):
                text += more
    os.close(reading)
    return text.replace(b"\r\n", b"\n")


def test_what_takes_long_is_one_line_of_the_terminal_that_is_erased() -> None:
    line, erased, rest = shown("input()", terminal=True).partition(b"\r\x1b[K")
    assert line.startswith(b"netsandbox: asking \\x1b[1msomebody somebody ")
    assert (len(line.decode()), erased, rest) == (79, b"\r\x1b[K", b"done\n")


def test_what_is_quick_shows_nothing() -> None:
    assert shown("pass", terminal=True, delay=600) == b"done\n"


@pytest.mark.parametrize(("terminal", "term"), [(False, "xterm"), (True, "dumb")])
def test_nothing_is_shown_in_a_pipe_or_on_a_terminal_that_cannot_erase(term: str, *, terminal: bool) -> None:
    assert shown("import time; time.sleep(0.05)", terminal=terminal, term=term) == b"done\n"


def test_an_error_erases_the_line_too() -> None:
    assert shown("input(); sys.exit(1)", terminal=True).endswith(b"somebody\r\x1b[K")
