"""What the files and profiles of a run said together the last time, so that an unchanged project costs no reading.

    <state home>/configuration/DIGEST    one file for each way of asking: folder, files, profiles, options

Rules kept: an answer counts only while everything that it rests on is as it was. Files of settings are compared by
their content, places that were looked at by being there or not, other files and variables by their stamps. No session
sees the folder (INV-8); an answer that is damaged, too old, of another version or of another owner is none.
"""

from __future__ import annotations

import marshal
import os
import sys
import time

from netsandbox.errors import NetsandboxError
from netsandbox.frozen import frozen
from netsandbox.paths import state_home
from netsandbox.runtime.digest import digest
from netsandbox.runtime.fingerprint import stamp
from netsandbox.runtime.private_file import content
from netsandbox.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from netsandbox.config.file_settings import FileSettings

MARK = (f"netsandbox configuration {__version__}", sys.hexversion)
SIZE_LIMIT = 4 * 1024 * 1024
FILE_LIMIT = 1024 * 1024  # of a file of settings; with a larger one nothing is remembered
CONTENT, STAMP, THERE = "content", "stamp", "there"  # how a thing that an answer rests on is compared
GONE = ""

Basis = tuple[tuple[str, str, object], ...]  # how, what, and what it was


@frozen
class Question:
    """Everything that is asked with: the same question has the same answer as long as its basis stays."""

    folder: str
    home: str
    config_home: str
    user: tuple[str, ...]
    project: tuple[str, ...]
    named: str | None
    names: tuple[str, ...]
    detect: bool
    mode: str | None

    @property
    def place(self) -> str:
        asked = repr((MARK, tuple(vars(self).values())))  # marshal writes equal values in several ways
        return os.path.join(memory_folder(), digest(asked.encode("utf-8", "surrogateescape")))

    @property
    def files(self) -> tuple[str, ...]:
        """The files of settings."""
        return (*self.user, *self.project, *(() if self.named is None else (self.named,)))


@frozen
class CachedAnswer:
    """`settings` is None where no file and no profile said anything."""

    settings: FileSettings | None


def memory_folder() -> str:
    return os.path.join(state_home(), "configuration")


def recall(question: Question) -> CachedAnswer | None:
    """The answer of earlier, if it still holds."""
    try:
        mark, until, basis, settings = marshal.loads(content(question.place, SIZE_LIMIT))  # noqa: S302 (ours)
        if mark != MARK or not until - time.time() > 0 or not holds(basis):
            return None
        return CachedAnswer(None if settings is None else decode(settings))
    except (OSError, NetsandboxError, ValueError, EOFError, TypeError, KeyError):
        return None


def holds(basis: Basis) -> bool:
    return all(look(how, what) == then for how, what, then in basis)


def look(how: str, what: str) -> object:
    """What a thing is now, to be compared with what it was."""
    if how == CONTENT:
        return content_digest(what)
    return stamp(what, os.environ) if how == STAMP else os.path.lexists(what)


def content_digest(path: str) -> str:
    """Of a file; GONE for what is none, or is too large to be remembered. A pipe is not opened: it is read once."""
    try:
        state = os.stat(path)
        if state.st_mode & 0o170000 != 0o100000 or state.st_size > FILE_LIMIT:
            return GONE
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return GONE
    try:
        data = os.read(descriptor, FILE_LIMIT + 1)
    except OSError:
        return GONE
    finally:
        os.close(descriptor)
    return digest(data) if len(data) == state.st_size else GONE


def encode(settings: FileSettings) -> dict[str, Any]:
    """As values that can be written."""
    fields: dict[str, Any] = dict(vars(settings))
    for name in ("allow_domains", "deny_domains"):
        fields[name] = [tuple(getattr(rule, slot) for slot in _OF_DOMAIN) for rule in fields[name]]
    fields["allow_addresses"] = [(rule.text, rule.origin) for rule in settings.allow_addresses]
    for name in _PATHS:
        fields[name] = None if fields[name] is None else _values(fields[name])
    fields["variables"] = _values(settings.variables)
    fields["localhost"] = dict(vars(settings.localhost))
    fields["bounds"] = dict(vars(settings.bounds))
    return fields


def decode(fields: dict[str, Any]) -> FileSettings:
    """What has no settings needs none of these, and starts the session before it loads them."""
    from netsandbox_portmap.localhost_settings import LocalhostSettings

    from netsandbox.config.file_settings import FileSettings
    from netsandbox.policy.file_rules import PathRule
    from netsandbox.policy.rules import DomainRule, parse_address
    from netsandbox.policy.variables import Layer as VariableLayer
    from netsandbox.settings import Bounds

    for name in ("allow_domains", "deny_domains"):
        fields[name] = tuple(
            DomainRule(text, origin, host, ports, apex=apex, below=below)
            for text, origin, host, ports, apex, below in fields[name]
        )
    fields["allow_addresses"] = tuple(parse_address(text, origin) for text, origin in fields["allow_addresses"])
    for name in _PATHS:
        fields[name] = None if fields[name] is None else tuple(PathRule(*values) for values in fields[name])
    fields["variables"] = tuple(VariableLayer(*values) for values in fields["variables"])
    fields["localhost"] = LocalhostSettings(**fields["localhost"])
    fields["bounds"] = Bounds(**fields["bounds"])
    return FileSettings(**fields)


_OF_DOMAIN = ("text", "origin", "name", "ports", "apex", "below")
_PATHS = ("allow_read", "allow_write", "deny_read", "allow_execute")


def _values(records: Iterable[object]) -> list[tuple[object, ...]]:
    return [tuple(vars(each).values()) for each in records]
