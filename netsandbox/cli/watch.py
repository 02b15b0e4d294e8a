"""`--watch`: shows a list again and again until Ctrl-C, and leaves the terminal as it was.

On a terminal the picture is drawn over the last one, every second. Anywhere else a block is printed whenever there is
something new, so that `… --watch --json | while read` works; it ends when the reader leaves.
"""

from __future__ import annotations

import json
import select
import shutil
import sys
from collections.abc import Callable

from netsandbox.cli.terminal import discard_stdout

HOME, CLEAR_LINE, CLEAR_BELOW, CLEAR = "\x1b[H", "\x1b[K", "\x1b[J", "\x1b[2J"
INTERVAL = 1.0

# What there is to show, and how it looks: apart, because a table has ages in it, which would be news every second.
Look = Callable[[], object]
Draw = Callable[[object], list[str]]


def watch(look: Look, draw: Draw, interval: float = INTERVAL) -> int:
    """The exit status: 0, whether the user or the reader ended it."""
    try:
        if sys.stdout.isatty():
            _redraw(look, draw, interval)
        else:
            _print_news(look, draw, interval)
    except KeyboardInterrupt:
        if sys.stdout.isatty():
            print()  # so that the shell's prompt is on a new line
    except BrokenPipeError:
        discard_stdout()
    return 0


def json_line(seen: object) -> list[str]:
    """The form for programs, which read line by line."""
    return [json.dumps(seen, separators=(",", ":"))]


def _redraw(look: Look, draw: Draw, interval: float) -> None:
    sys.stdout.write(CLEAR)
    while True:
        lines = draw(look())
        height = shutil.get_terminal_size().lines
        if len(lines) >= height:
            room = max(0, height - 2)  # one line is for the cursor
            lines = [*lines[:room], f"... and {len(lines) - room} more"]
        sys.stdout.write(HOME + "".join(f"{line}{CLEAR_LINE}\n" for line in lines) + CLEAR_BELOW)
        sys.stdout.flush()
        _wait(interval)


def _print_news(look: Look, draw: Draw, interval: float) -> None:
    last: object = None
    while True:
        seen = look()
        if seen != last:
            print("\n".join(draw(seen)), flush=True)
            last = seen
        _wait(interval)


def _wait(interval: float) -> None:
    """Until the next look; a reader who leaves is noticed at once, not at the next news."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    if any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(interval * 1000)):
        raise BrokenPipeError
