"""`netsandbox logs`: the output of a session that runs, or ran, in the background."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator, Iterator
from typing import BinaryIO

from netsandbox.audit.sweep import is_live
from netsandbox.cli.help import print_help
from netsandbox.cli.terminal import discard_stdout, wants_colour
from netsandbox.cli.terminal_text import RESET, TerminalText
from netsandbox.errors import NetsandboxError, UsageError
from netsandbox.paths import OUTPUT_NAME, list_sessions, session_dir
from netsandbox.runtime.option_parser import FLAG, SESSIONS, VALUE, Option, parse
from netsandbox.session.recorded_names import log_of, name_in
from netsandbox.session.sessions_client import live_sessions

CHUNK = 1 << 16
INTERVAL = 0.1  # seconds between two looks, with --follow
OPTIONS = (
    Option("follow", FLAG, "f", "", "print what comes until the session ends or Ctrl-C"),
    Option("lines", VALUE, "n", "N", "only the last N lines"),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = SESSIONS
USAGE = """\
usage: netsandbox logs NAME [--follow] [--lines N]

  netsandbox logs -f shop

Print the output of a session that was started with `run --detach`, while it runs and afterwards. NAME is its name, \
its id or the beginning of its id. A terminal gets text and colours, other programs the bytes as they are."""


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox logs")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    words = [*parsed.words, *(parsed.command or ())]
    if len(words) != 1:
        raise UsageError("logs needs one NAME; `netsandbox ps` lists the sessions that run")
    count = _line_count(parsed.values.get("lines"))
    path = find_output(words[0])
    try:
        _print(_parts(path, count, follow="follow" in parsed.flags))
    except BrokenPipeError:
        discard_stdout()
    except KeyboardInterrupt:
        pass
    except OSError as error:
        raise NetsandboxError(f"cannot read {path!a}: {error.strerror}; is it yours?") from None
    return 0


def find_output(word: str) -> str:
    """The file with the output of the running session called *word*, or of the newest that fits."""
    for status in live_sessions():
        if word in (status["name"], status["session"]):
            return _existing(status["session"], word)
    for session in list_sessions():
        if session.startswith(word) or name_in(log_of(session)) == word:
            return _existing(session, word)
    raise UsageError(f"no session is called {word!a}; `netsandbox ps` lists those that run")


def _existing(session: str, word: str) -> str:
    path = os.path.join(session_dir(session), OUTPUT_NAME)
    if not os.path.exists(path):
        raise NetsandboxError(f"{word!a} has no kept output; only sessions of `netsandbox run --detach` keep theirs")
    return path


def _line_count(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(f"--lines {text[:80]!a} is not a number; write for instance --lines 100")
    return int(text)


def _parts(path: str, count: int | None, *, follow: bool) -> Iterator[bytes]:
    """The bytes of the output; empty ones where nothing has come yet."""
    with open(path, "rb") as file:
        yield from _so_far(path, file.read(), count)
        goes_on = follow and (yield from _follow(file, path))
    while goes_on:
        with open(path, "rb") as file:
            goes_on = yield from _follow(file, path)


def _follow(file: BinaryIO, path: str) -> Generator[bytes, None, bool]:
    """What comes in *file*; whether another one has replaced it."""
    while True:
        live = is_live(path) or not os.path.exists(path)  # it is missing for a moment before there is a new one
        if part := file.read(CHUNK):
            yield part
        elif _is_replaced(file.fileno(), path):
            return True
        elif not live:
            return False
        else:
            yield b""
            time.sleep(INTERVAL)


def _so_far(path: str, newest: bytes, count: int | None) -> Iterator[bytes]:
    older = b""
    if os.path.exists(f"{path}.1"):
        with open(f"{path}.1", "rb") as file:
            older = file.read()
    if count is None:
        yield from (older, newest)
    else:
        yield b"".join((older + newest).splitlines(keepends=True)[-count:] if count else ())


def _is_replaced(file: int, path: str) -> bool:
    try:
        return os.stat(path).st_ino != os.fstat(file).st_ino
    except FileNotFoundError:
        return False


def _print(parts: Iterator[bytes]) -> None:
    if not sys.stdout.isatty():
        for part in parts:
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
        return
    colours = wants_colour(sys.stdout)
    text = TerminalText(colours=colours)
    try:
        for part in parts:
            sys.stdout.write(text.feed(part))
            sys.stdout.flush()
    finally:
        sys.stdout.write(text.feed(b"", final=True) + (RESET if colours else ""))
