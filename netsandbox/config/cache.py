"""The disk cache of configuration: values, each with fingerprints of its inputs.

    <state home>/cache/DIGEST    one file for each kind of value and key

Rules kept: a value is used only while all its inputs are unchanged, and for a bounded time. Files of settings are
compared by content, other files and variables by a fingerprint, other paths by existence. No session sees the folder
(INV-8). A file is ignored if it is damaged, from another version or from the future, or if somebody else could have
written it. Every launch loads this module, so it imports nothing heavy.
"""

from __future__ import annotations

import marshal
import os
import sys
import time

from netsandbox import __version__
from netsandbox.errors import NetsandboxError
from netsandbox.frozen import frozen
from netsandbox.paths import state_home
from netsandbox.runtime.private_file import content, digest, make_room, replace
from netsandbox.runtime.used_homes import STATE, check_home, made_known_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from netsandbox.config.file_settings import FileSettings

MARK = (f"netsandbox {__version__}", sys.hexversion)
MAX_SIZE = 4 * 1024 * 1024
MAX_FILES = 500
MAX_CONTENT = 1024 * 1024  # of a file that is compared by its content; a value with a larger input is not stored
CONTENT, FINGERPRINT, EXISTS = "content", "fingerprint", "exists"  # how an input is compared
ABSENT = "absent"
FOREVER = float("inf")
_DIGEST_LENGTH = 64

CONFIGURATION = "configuration"  # the kind of the settings of a folder

Input = tuple[str, str, object]  # how it is compared, a path or `$VARIABLE`, and what it was


@frozen
class ConfigSources:
    """The sources of a run's configuration: its folder, files, profiles and the options about them."""

    folder: str
    home: str
    config_home: str
    user: tuple[str, ...]
    project: tuple[str, ...]
    named: str | None
    profiles: tuple[str, ...]
    detect: bool
    mode: str | None
    command: str = ""  # if it selects a profile

    @property
    def key(self) -> tuple[object, ...]:
        return tuple(vars(self).values())

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.user, *self.project, *(() if self.named is None else (self.named,)))


def recall_settings(sources: ConfigSources) -> tuple[FileSettings | None] | None:
    """The settings of the last run with these sources, in a tuple (None: no file has any); None if unknown."""
    value = recall(CONFIGURATION, sources.key)
    if value is None or value == (None,):
        return value  # type: ignore[no-any-return]
    from netsandbox.config.file_settings import from_plain

    try:
        return (from_plain(*value),)
    except (TypeError, KeyError, ValueError):
        return None


def folder() -> str:
    return os.path.join(check_home(STATE, state_home()), "cache")


def path_of(kind: str, key: object) -> str:
    """The file for the value of *key*, which consists of plain values."""
    text = repr((MARK, kind, key))  # marshal writes equal values in several ways
    return os.path.join(folder(), digest(text.encode("utf-8", "surrogateescape")))


def recall(kind: str, key: object, environment: Mapping[str, str] = os.environ) -> Any:
    """The stored value, if its inputs are unchanged; None otherwise."""
    try:
        data = content(path_of(kind, key), MAX_SIZE)
        if digest(data[_DIGEST_LENGTH:]).encode("ascii") != data[:_DIGEST_LENGTH]:
            return None
        mark, stored, seconds, inputs, value = marshal.loads(data[_DIGEST_LENGTH:])  # noqa: S302 (no session sees it)
        if mark != MARK or not stored <= time.time() < stored + seconds or not unchanged(inputs, environment):
            return None
    except (OSError, NetsandboxError, ValueError, EOFError, TypeError):
        return None
    return value


def store(kind: str, key: object, value: object, inputs: tuple[Input, ...], seconds: float) -> None:
    """Store *value*, which consists of plain values and is not None, in one step. If that fails, the next run computes
    it."""
    try:
        plain: Any = (MARK, int(time.time()), seconds, inputs, value)
        data = marshal.dumps(plain)
        if len(data) > MAX_SIZE - _DIGEST_LENGTH:
            return
        made_known_state()
        os.makedirs(folder(), 0o700, exist_ok=True)
        make_room(folder(), MAX_FILES)
        replace(path_of(kind, key), digest(data).encode("ascii") + data)
    except (OSError, ValueError, NetsandboxError):
        pass


def unchanged(inputs: tuple[Input, ...], environment: Mapping[str, str] = os.environ) -> bool:
    return all(current(how, name, environment) == then for how, name, then in inputs)


def current(how: str, name: str, environment: Mapping[str, str] = os.environ) -> object:
    """The present fingerprint of an input."""
    if how == CONTENT:
        return content_digest(name)
    return fingerprint(name, environment) if how == FINGERPRINT else os.path.lexists(name)


def content_digest(path: str) -> str:
    """The digest of a file; ABSENT if it is not a regular file, or too large. A pipe is not opened, because its bytes
    can be read only once."""
    try:
        state = os.stat(path)
        if state.st_mode & 0o170000 != 0o100000 or state.st_size > MAX_CONTENT:
            return ABSENT
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            data = os.read(descriptor, MAX_CONTENT + 1)
        finally:
            os.close(descriptor)
    except (OSError, ValueError):
        return ABSENT
    return digest(data) if len(data) == state.st_size else ABSENT


def fingerprint(name: str, environment: Mapping[str, str]) -> str:
    """The fingerprint of a file, of the variable `$NAME`, or of all variables `$PREFIX*` (in any case).

    For variables it is a digest, because their values may be passwords.
    """
    if name[:1] != "$":
        return _file_fingerprint(name)
    if name[-1:] == "*":
        names = sorted(with_prefix(environment, name[1:-1]))
        return _text_digest("\0".join(f"{each}={environment[each]}" for each in names))
    value = environment.get(name[1:])
    return ABSENT if value is None else _text_digest(value)


def with_prefix(environment: Mapping[str, str], prefix: str) -> list[str]:
    """The names of the variables that begin with *prefix*, which is in lower case, in any case."""
    return [name for name in environment if name[: len(prefix)].lower() == prefix]


def _file_fingerprint(path: str) -> str:
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return ABSENT
    return f"{state.st_mtime_ns} {state.st_ctime_ns} {state.st_size} {state.st_mode} {state.st_uid}"


def _text_digest(text: str) -> str:
    return digest(text.encode("utf-8", "surrogateescape"))
