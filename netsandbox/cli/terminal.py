"""Reading from and writing to the user's terminal: answers on stdout, notices on stderr, questions."""

from __future__ import annotations

import os
import sys

from netsandbox.text import single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

USUAL_WIDTH, MAX_PAGE_WIDTH = 80, 120


def print_text(text: str) -> None:
    """Print *text* and a line end. A reader that has left (`| head`) is no error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        discard_stdout()


def notice(text: str) -> None:
    """One line on stderr, with everything escaped that a terminal would obey."""
    try:
        sys.stderr.write(f"netsandbox: {single_line(text)}\n")
    except OSError:  # nobody reads it
        pass


def discard_stdout() -> None:
    """Send later output nowhere: otherwise the interpreter reports the broken pipe again at its end."""
    silent = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(silent, 1)
    os.close(silent)


def wants_colour(stream: TextIO) -> bool:
    """Whether *stream* is a terminal with colours and the user wants them."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int | None:
    """None when a program reads the output; nothing is cut then."""
    if not sys.stdout.isatty():
        return None
    return _columns() or os.get_terminal_size(1).columns or USUAL_WIDTH


def page_width() -> int:
    """The width for text that is wrapped: that of the terminal, also where a pager shows the text on it."""
    if width := _columns():
        return min(width, MAX_PAGE_WIDTH)
    for fd in (1, 2, 0):
        try:
            return min(os.get_terminal_size(fd).columns or USUAL_WIDTH, MAX_PAGE_WIDTH)
        except OSError:  # not a terminal
            pass
    return USUAL_WIDTH


def _columns() -> int:
    """What the user set; 0 for nothing."""
    wanted = os.environ.get("COLUMNS", "")
    return int(wanted) if wanted.isdecimal() and len(wanted) < 6 else 0


def confirm(question: str) -> bool:
    """Whether the answer is a yes; anything else, or none, is a no."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
