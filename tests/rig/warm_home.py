"""Gives a new home the disk cache that its first session would write: to read profiles takes longer than all else that
a launch does, and nearly every test has a home of its own.

One session of each account writes the cache of a home without configuration. Other new homes get a copy in which the
paths and fingerprints of the inputs are their own. netsandbox compares all of these inputs with what it finds, so where
a test writes configuration or sets variables, nothing of it is used.
"""

from __future__ import annotations

import marshal
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netsandbox.config.cache import CONFIGURATION, ConfigSources, current
from netsandbox.runtime.private_file import digest

if TYPE_CHECKING:
    from tests.rig.command import Home

LENGTH = 64  # of the digest before the rest of a file
FOLDER = Path("netsandbox", "cache")


class StoredCache:
    """The files in the cache of a home that had one session."""

    def __init__(self, home: Home) -> None:
        self._path = str(home.path)
        self._files = {file.name: file.read_bytes() for file in (home.state / FOLDER).glob("*")}
        marks = {marshal.loads(data[LENGTH:])[0] for data in self._files.values()}
        self._mark = next(iter(marks), None)
        self._settings = self._files.pop(self._name(home), None)

    def copy_to(self, home: Home) -> None:
        """*home* is new: nothing in it could be lost or counts."""
        if self._settings is None:
            return
        folder = home.state / FOLDER
        folder.mkdir(mode=0o700, parents=True)
        for name, data in {**self._files, self._name(home): self._moved(self._settings, home)}.items():
            (folder / name).write_bytes(data)
            (folder / name).chmod(0o600)
        for path in (folder.parent, folder, *folder.iterdir()):
            os.chown(path, home.identity.uid, home.identity.gid)

    def _name(self, home: Home) -> str:
        """Of the file with the settings of a session that has no profiles by name and no mode."""
        sources = ConfigSources(
            *(str(home.work), str(home.path), str(home.path / "config" / "netsandbox")), (), (), None, (), True, None
        )
        return digest(repr((self._mark, CONFIGURATION, sources.key)).encode())

    def _moved(self, data: bytes, home: Home) -> bytes:
        mark, stored, seconds, inputs, value = marshal.loads(data[LENGTH:])
        environment = home.environment(None)
        names = [(how, name.replace(self._path, str(home.path))) for how, name, _ in inputs]
        found = tuple((how, name, current(how, name, environment)) for how, name in names)
        plain: Any = (mark, stored, seconds, found, value)
        moved = marshal.dumps(plain)
        return digest(moved).encode() + moved
