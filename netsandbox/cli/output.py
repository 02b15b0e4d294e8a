"""Printing an answer to whoever reads it, who may stop reading (`| head`) without that being our error."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


def put(text: str) -> None:
    """Print *text* with a line end; if nobody reads any more, fall silent."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        fall_silent()


def fall_silent() -> None:
    """What is still buffered would complain once more at the interpreter's end."""
    silent = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(silent, 1)
    os.close(silent)


def coloured(stream: TextIO) -> bool:
    """Whether its reader sees colours and did not ask for none."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int | None:
    """None when the output is read by a program, for which nothing is cut."""
    if not sys.stdout.isatty():
        return None
    wanted = os.environ.get("COLUMNS", "")
    return int(wanted) if wanted.isdecimal() and int(wanted) else os.get_terminal_size(1).columns or 80
