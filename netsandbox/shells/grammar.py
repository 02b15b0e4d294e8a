"""The input of completion: commands with their options, and words that are looked up on each completion.

These words are profiles, sessions, pending approvals, logs and hosts in logs. Programs in the sandbox choose much of
that text, so only plain words are returned, only a few of them, and within a short time.
"""

from __future__ import annotations

import os
import time

from netsandbox.errors import NetsandboxError
from netsandbox.frozen import frozen
from netsandbox.paths import LOG_NAME, list_sessions, session_dir, state_home
from netsandbox.runtime.option_parser import DOMAINS, LOGS, OVERLAYS, PENDING, PROFILES, SESSIONS, VARIABLES
from netsandbox.text import single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from netsandbox.runtime.option_parser import Option, Words

MAX_WORDS = 200
MAX_SECONDS = 0.5
NEWEST_LOGS = 20
TAIL = 1 << 17  # bytes of each log
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


@frozen
class Command:
    """One command. `subcommands` has the words that can follow each of them; without subcommands, `words` has them."""

    name: str
    about: str
    usage: str
    options: tuple[Option, ...]
    words: Words = ()
    subcommands: Mapping[str, Words] = {}
    runs_command: bool = False  # whether another command follows `--`


def look_up(kind: str) -> dict[str, str]:
    """The words of *kind*, each with its description or nothing; empty when they cannot be read."""
    try:
        words = plain(_FINDERS[kind]())
        return _described(words) if kind == PROFILES else dict.fromkeys(words, "")
    except (OSError, NetsandboxError):
        return {}


def plain(found: Iterable[str]) -> list[str]:
    """The plain words of *found* in their order, each once. What a shell would not read as one word is dropped."""
    kept: dict[str, None] = {}
    for word in found:
        if 0 < len(word) < 254 and _LETTERS.issuperset(word) and word[0] not in "-.":
            kept[word] = None
            if len(kept) == MAX_WORDS:
                break
    return list(kept)


def _profiles() -> Iterable[str]:
    from netsandbox.config.profiles.profile_files import everything

    return everything()


def _described(names: Iterable[str]) -> dict[str, str]:
    """A project can describe its profiles in any words, so only the user's and the built-in ones have descriptions."""
    from netsandbox.config.profiles.profile import Library
    from netsandbox.config.profiles.profile_files import own

    library, known, described = Library(), own(), dict.fromkeys(names, "")
    for name in described.keys() & known.keys():
        try:
            described[name] = single_line(library.about(known[name]).get("about", ""))
        except (OSError, NetsandboxError):
            continue  # a file that cannot be used is offered, and `run` tells what is wrong with it
    library.close()
    return described


def _sessions() -> Iterable[str]:
    from netsandbox.session.sessions_client import survey

    return [str(status["name"]) for status in survey(MAX_SECONDS)[0]]


def _pending() -> Iterable[str]:
    from netsandbox.session.sessions_client import survey

    return [str(question["id"]) for status in survey(MAX_SECONDS)[0] for question in status["pending"]]


def _overlays() -> Iterable[str]:
    from netsandbox.backends.linux.kept_overlays import KeptOverlays

    return KeptOverlays(state_home()).names()


def _domains() -> Iterator[str]:
    """The sessions, the newest first."""
    from netsandbox.audit.reader import parse

    until = time.monotonic() + MAX_SECONDS
    for session in list_sessions()[:NEWEST_LOGS]:
        path = os.path.join(session_dir(session), LOG_NAME)
        for raw in reversed(_last_lines(path)):
            if time.monotonic() > until:
                return
            record = parse(raw, path, 0).record
            if record is not None and isinstance(record.get("host"), str):
                yield record["host"]


def _last_lines(path: str) -> list[bytes]:
    """The hosts in a log, which may be growing and whose first line may be cut."""
    from netsandbox.audit.reader import open_log

    try:
        with open_log(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL))
            return file.read(TAIL).split(b"\n")
    except (OSError, NetsandboxError):  # gone, or no log: there are others
        return []


_FINDERS: dict[str, Callable[[], Iterable[str]]] = {
    PROFILES: _profiles,
    SESSIONS: _sessions,
    LOGS: lambda: list_sessions()[:NEWEST_LOGS],
    DOMAINS: _domains,
    PENDING: _pending,
    OVERLAYS: _overlays,
    VARIABLES: lambda: sorted(os.environ),
}
