"""The tables of profiles as they were read before, so that TOML is parsed once and not at every start.

    <state home>/profiles    one file: each profile's path, what the file was like then, its tables and their lines

Only what was a valid profile is kept. The folder is hidden from every session (INV-8). A file that changed is read
again, and so is everything when the memory is damaged or was written by another version. Whether a kept table still is
a profile is decided when it is used.
"""

from __future__ import annotations

import marshal
import os
import sys

from netsandbox.errors import NetsandboxError
from netsandbox.paths import made_state_home, state_home
from netsandbox.runtime.fingerprint import ABSENT, stamp
from netsandbox.runtime.private_file import content, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from netsandbox.config.document import Lines
    from netsandbox.config.profiles.profile_files import ProfileFile

_MARK = ("netsandbox profiles 2", sys.hexversion)
_SIZE_LIMIT = 4 * 1024 * 1024


class Library:
    """Reads profiles; `close` keeps what was new."""

    def __init__(self) -> None:
        self._kept = _recalled()
        self._used: dict[str, tuple[str, Any, Any]] = {}
        self._is_new = False

    def tables(self, name: str, path: str) -> tuple[dict[str, Any], Lines]:
        """What the profile *name* in the file *path* says, and where; a `UsageError` if it is none."""
        now = stamp(path, {})
        kept = self._kept.get(path)
        if kept is None or now == ABSENT or kept[0] != now:
            kept = (now, *_read(name, path))
            self._is_new = True
        self._used[path] = kept
        return kept[1], kept[2]

    def itself(self, each: ProfileFile) -> dict[str, Any]:
        """What a profile says about itself."""
        told: dict[str, Any] = self.tables(each.name, each.path)[0].get("profile", {})
        return told

    def close(self) -> None:
        """Kept in one step; where that is not possible, the files are read again."""
        if not self._is_new:
            return
        there = {path: kept for path, kept in self._kept.items() if os.path.lexists(path)}
        try:
            data = marshal.dumps((_MARK, {**there, **self._used}))
        except ValueError:  # a value that no key takes
            return
        if len(data) > _SIZE_LIMIT:
            return
        try:
            made_state_home()
            replace(_place(), data)
        except (OSError, NetsandboxError):
            pass


def _place() -> str:
    return os.path.join(state_home(), "profiles")


def _recalled() -> dict[str, tuple[str, Any, Any]]:
    try:
        mark, kept = marshal.loads(content(_place(), _SIZE_LIMIT))  # noqa: S302 (ours: no session sees the folder)
    except (OSError, NetsandboxError, ValueError, EOFError, TypeError):
        return {}
    return kept if mark == _MARK and isinstance(kept, dict) else {}


def _read(name: str, path: str) -> tuple[dict[str, Any], Lines]:
    from netsandbox.config.document import parsed, read
    from netsandbox.config.profiles.profile import profile_of

    document, lines = parsed(path, read(path, regular=True))
    profile_of(name, path, document, lines)
    return document, lines
