"""One profile: a file with the keys of a configuration, and a table about itself; and the cache of parsed profiles."""

from __future__ import annotations

import os

from netsandbox.config import cache
from netsandbox.config.document import checked, parsed, read
from netsandbox.config.key import TEXT, TEXTS, Key, never
from netsandbox.config.keys import KEYS
from netsandbox.config.layer import Layer
from netsandbox.config.readers import relative_files, text
from netsandbox.errors import UsageError
from netsandbox.frozen import frozen
from netsandbox.text import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from netsandbox.config.document import Lines
    from netsandbox.config.key import Entry
    from netsandbox.config.profiles.profile_files import ProfileFile

ABOUT_ITSELF = "profile"
_KIND = "profiles"  # in the cache
_NOT_HERE = ("inherit_global", "profiles", "default_profiles")  # these are about files, not about profiles


@frozen
class Profile:
    """`detect`: each of these files in a project selects the profile. `registries`: tools whose registries it
    allows."""

    name: str
    path: str
    about: str
    registries: tuple[str, ...]
    detect: tuple[str, ...]
    layer: Layer


def _tools(entry: Entry) -> tuple[str, ...]:
    from netsandbox.config.registries.tools import TOOLS

    tools = entry.items(str, '["npm"]')
    for tool, origin in tools:
        if tool not in TOOLS:
            raise UsageError(f"{origin}: no registry is known for {quoted(tool)}; use one of {', '.join(TOOLS)}")
    return tuple(tool for tool, _ in tools)


def _tables() -> dict[str, dict[str, Key]]:
    tables = {name: keys for name, keys in KEYS.items() if name != "profiles"}
    tables["sandbox"] = {name: key for name, key in KEYS["sandbox"].items() if name not in _NOT_HERE}
    tables[ABOUT_ITSELF] = {
        "about": Key("", text("a sentence as a string"), "what it is for, in one line", TEXT, never),
        "registries": Key("", _tools, "tools whose registries are let through", TEXTS, never),
        "detect": Key("", relative_files, "files of a project that choose it", TEXTS, never),
    }
    return tables


TABLES = _tables()


def profile_of(name: str, path: str, document: dict[str, Any], lines: Lines, *, trusted: bool = True) -> Profile:
    """The profile in a file's tables; a `UsageError` names file and line."""
    layer = checked(path, document, lines, TABLES, trusted=trusted)
    about_itself: dict[str, Any] = {
        key: setting.value for (table, key), setting in layer.values.items() if table == ABOUT_ITSELF
    }
    rest = {place: setting for place, setting in layer.values.items() if place[0] != ABOUT_ITSELF}
    return Profile(
        name,
        path,
        about_itself.get("about", ""),
        about_itself.get("registries", ()),
        about_itself.get("detect", ()),
        Layer(path, rest, trusted),
    )


class Library:
    """Reads profiles. `close` stores the parsed tables, so that TOML is not parsed at every start.

    A changed file is parsed again. A stored table is checked when it is used.
    """

    def __init__(self) -> None:
        self._stored: dict[str, tuple[str, Any, Any]] = cache.recall(_KIND, ()) or {}
        self._used: dict[str, tuple[str, Any, Any]] = {}
        self._is_new = False

    def tables(self, name: str, path: str) -> tuple[dict[str, Any], Lines]:
        """The tables of the profile *name* in the file *path*, and their lines; a `UsageError` if it is not a
        profile."""
        now = cache.fingerprint(path, {})
        stored = self._stored.get(path)
        if stored is None or now == cache.ABSENT or stored[0] != now:
            stored = (now, *_read(name, path))
            self._is_new = True
        self._used[path] = stored
        return stored[1], stored[2]

    def about(self, file: ProfileFile) -> dict[str, Any]:
        """The table of a profile about itself."""
        table: dict[str, Any] = self.tables(file.name, file.path)[0].get(ABOUT_ITSELF, {})
        return table

    def close(self) -> None:
        if self._is_new:
            kept = {path: stored for path, stored in self._stored.items() if os.path.lexists(path)}
            cache.store(_KIND, (), {**kept, **self._used}, (), cache.FOREVER)


def _read(name: str, path: str) -> tuple[dict[str, Any], Lines]:
    document, lines = parsed(path, read(path, regular=True))
    profile_of(name, path, document, lines)
    return document, lines
