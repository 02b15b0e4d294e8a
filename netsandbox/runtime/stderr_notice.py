"""A line for the user while the command runs.

Standard error is the command's, and its reader may be slow or gone: a line that would have to wait is left out, since
every door of the session would wait with it.
"""

from __future__ import annotations

import os
import select
import sys

_AT_ONCE = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def say(stderr: int, text: str) -> bool:
    """Whether *text*, which is shorter than a pipe's smallest free room (4096 bytes), was taken."""
    line = f"netsandbox: {text}\n".encode()
    try:
        terminal = _reopened(stderr) if os.isatty(stderr) else None
        if terminal is not None:
            try:
                return os.write(terminal, line) == len(line)
            finally:
                os.close(terminal)
        watch = select.poll()
        watch.register(stderr, select.POLLOUT)
        if not watch.poll(0):
            return False
        os.write(stderr, line)
    except (OSError, ValueError):  # nobody reads it
        return False
    return True


def _reopened(stderr: int) -> int | None:
    """A terminal that is ready for a byte may not be ready for a line, and its mode is shared with the command: so it
    is opened once more. None where that is not possible, as after su: there a byte has to do."""
    try:
        return os.open(f"/proc/self/fd/{stderr}" if sys.platform == "linux" else os.ttyname(stderr), _AT_ONCE)
    except OSError:
        return None
