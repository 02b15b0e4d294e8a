"""Answers of earlier, where a session cannot see them: one file for each tool and folder under the state home.

    <state home>/registries/<digest of tool, folder and home>

An answer holds as long as each file and variable that it rests on is what it was, and for a bounded time, since a
tool's own default can change without a trace. A file that is damaged, or that is not ours alone to write, is no answer.
Reading costs one small read and a few stats, and imports nothing heavy.
"""

from __future__ import annotations

import os
import time

from netsandbox.config.registries.answer import Answer, Registry
from netsandbox.errors import NetsandboxError
from netsandbox.paths import made_state_home, state_home
from netsandbox.runtime.digest import digest
from netsandbox.runtime.fingerprint import stamp
from netsandbox.runtime.private_file import content, make_room, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_VERSION = "netsandbox registries 2"
_SIZE_LIMIT = 256 * 1024
_MAX_FILES = 500
_LASTS = {True: 7 * 86400, False: 600}  # seconds; an answer with gaps is soon asked for again


def folder() -> str:
    """Where the answers are."""
    return os.path.join(state_home(), "registries")


def recall(tool: str, place: str, home: str, environment: Mapping[str, str]) -> Answer | None:
    """The answer of earlier if it still holds."""
    try:
        kept = decode(content(os.path.join(folder(), _name(tool, place, home)), _SIZE_LIMIT), int(time.time()))
    except (OSError, ValueError, NetsandboxError):
        return None
    if kept is None or any(stamp(name, environment) != then for name, then in kept.consulted):
        return None
    return kept


def keep(tool: str, place: str, home: str, answer: Answer) -> None:
    """Store *answer* in one step; where that is not possible, it is asked for again."""
    data = encode(answer, int(time.time()))
    if len(data) > _SIZE_LIMIT:
        return
    try:
        made_state_home()
        where = folder()
        os.makedirs(where, 0o700, exist_ok=True)
        make_room(where, _MAX_FILES)
        replace(os.path.join(where, _name(tool, place, home)), data)
    except (OSError, NetsandboxError):
        pass


def encode(answer: Answer, now: int) -> bytes:
    """Fields that end in a zero byte, which no path, name or note has, after a digest of them all."""
    fields = [_VERSION, str(now), str(int(answer.complete))]
    for rows in (
        [(each.pattern, each.origin, str(int(each.project))) for each in answer.registries],
        [(note,) for note in answer.notes],
        answer.consulted,
        [(path,) for path in answer.unasked],
    ):
        fields.append(str(len(rows)))
        for row in rows:
            fields.extend(row)
    body = "\0".join(fields).encode("utf-8", "surrogateescape")
    return digest(body).encode("ascii") + body


def decode(data: bytes, now: int) -> Answer | None:
    """The answer, or None if it is damaged, of another version, too old, or from the future."""
    if digest(data[64:]).encode("ascii") != data[:64]:
        return None
    fields = iter(data[64:].decode("utf-8", "surrogateescape").split("\0"))
    try:
        if next(fields) != _VERSION:
            return None
        then, complete = int(next(fields)), next(fields) == "1"
        registries = tuple(Registry(next(fields), next(fields), next(fields) == "1") for _ in range(int(next(fields))))
        notes = tuple(next(fields) for _ in range(int(next(fields))))
        consulted = tuple((next(fields), next(fields)) for _ in range(int(next(fields))))
        unasked = tuple(next(fields) for _ in range(int(next(fields))))
    except (StopIteration, RuntimeError, ValueError):
        return None
    if next(fields, None) is not None or not then <= now < then + _LASTS[complete]:
        return None
    return Answer(registries, notes, consulted, unasked, complete)


def _name(tool: str, place: str, home: str) -> str:
    return digest("\0".join((tool, place, home)).encode("utf-8", "surrogateescape"))
