"""A line for the user while the command runs.

Standard error is the command's, and its reader may be slow or gone: a line that would have to wait is left out, since
every door of the session would wait with it.
"""

from __future__ import annotations

import os
import select

_AT_ONCE = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def say(stderr: int, text: str) -> bool:
    """Whether *text*, which is shorter than a pipe's smallest free room (4096 bytes), was taken."""
    line = f"netsandbox: {text}\n".encode()
    try:
        if os.isatty(stderr):
            return _to_terminal(stderr, line)
        watch = select.poll()
        watch.register(stderr, select.POLLOUT)
        if not watch.poll(0):
            return False
        os.write(stderr, line)
    except (OSError, ValueError):  # nobody reads it
        return False
    return True


def _to_terminal(stderr: int, line: bytes) -> bool:
    """A terminal that is ready for a byte may not be ready for a line, and its mode is shared with the command: so it
    is opened once more."""
    terminal = os.open(os.ttyname(stderr), _AT_ONCE)
    try:
        return os.write(terminal, line) == len(line)
    finally:
        os.close(terminal)
