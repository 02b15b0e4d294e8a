"""One profile: a file with the keys of a configuration, and what it says about itself (pure)."""

from __future__ import annotations

from netsandbox.config.document import checked
from netsandbox.config.key import TEXT, TEXTS, Key, never
from netsandbox.config.keys import KEYS
from netsandbox.config.layer import Layer
from netsandbox.config.readers import relative_files, text
from netsandbox.config.registries.lookup import TOOLS
from netsandbox.errors import UsageError
from netsandbox.frozen import frozen
from netsandbox.text import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from netsandbox.config.document import Lines
    from netsandbox.config.located_value import Entry

ABOUT_ITSELF = "profile"
_NOT_HERE = ("inherit_global", "profiles", "default_profiles")  # about files, which a profile is not


@frozen
class Profile:
    """`detect`: any of these files in a project chooses it. `registries`: tools whose hosts it lets through."""

    name: str
    path: str
    about: str
    registries: tuple[str, ...]
    detect: tuple[str, ...]
    layer: Layer


def _tools(entry: Entry) -> tuple[str, ...]:
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
    """The profile that a file's tables make; a `UsageError` names file and line."""
    layer = checked(path, document, lines, TABLES, trusted=trusted)
    itself: dict[str, Any] = {key: said.value for (table, key), said in layer.values.items() if table == ABOUT_ITSELF}
    rest = {place: said for place, said in layer.values.items() if place[0] != ABOUT_ITSELF}
    return Profile(
        name,
        path,
        itself.get("about", ""),
        itself.get("registries", ()),
        itself.get("detect", ()),
        Layer(path, rest, trusted),
    )
