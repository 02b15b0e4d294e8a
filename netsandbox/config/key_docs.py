"""What is to be said about each key, made from the table of keys: kind of value, default, who may say it. Pure."""

from __future__ import annotations

import json

from netsandbox.backends.seatbelt.profile import switches
from netsandbox.config.file_settings import FileSettings
from netsandbox.config.key import HARMLESS_PROFILES, always, names_opening, never
from netsandbox.config.keys import KEYS
from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from netsandbox.config.key import Key

YES, NO = "yes", "no"
TRUST: dict[Callable[[object], bool], str] = {  # where the values are too many to ask about each
    always: YES,
    never: NO,
    bool: "unless empty",
    names_opening: f"for others than {', '.join(f'`{name}`' for name in HARMLESS_PROFILES)}",
    switches.widens: f"unless it begins with `{switches.NO}`",
}
PLAIN = {"string": "text", "integer": "number", "boolean": "`true`, `false`"}


@frozen
class Row:
    """One key in words, in Markdown; what is empty has nothing to be said."""

    key: str
    kind: str
    default: str
    about: str
    trust: str
    options: str


def rows(table: str) -> list[Row]:
    """Of each key of *table*, in the order of the table of keys."""
    return [_row(table, name, key) for name, key in KEYS[table].items()]


def default(table: str, key: Key) -> object:
    """The value that holds where nobody says the key; None: there is none, or `Key.unsaid` tells."""
    if key.unsaid or not key.field or key.means:
        return None
    usual = FileSettings()
    home = {"localhost": usual.localhost, "limits": usual.bounds}.get(table, usual)
    value: object = getattr(home, key.field, None)
    if isinstance(value, tuple):
        return list(value) or None
    return value


def _row(table: str, name: str, key: Key) -> Row:
    value = default(table, key)
    told = key.unsaid or ("" if value is None else f"`{json.dumps(value)}`")
    options = ", ".join(f"`--{option}`" for option in key.options)
    return Row(name, _kind(key.schema), told, _about(key), _trust(key), options)


def _about(key: Key) -> str:
    if key.stacks:
        return f"{key.about}; the highest file that speaks of a name decides"
    return f"{key.about}; added up" if key.adds and not key.means else key.about


def _kind(schema: Mapping[str, object]) -> str:
    items, values, words = schema.get("items"), schema.get("additionalProperties"), schema.get("enum")
    if isinstance(words, list):
        return ", ".join(f'`"{word}"`' for word in words)
    if isinstance(items, dict):
        return f"list of {_kind(items)}{'s' * (items.get('type') == 'integer')}"
    if isinstance(values, dict):
        return f"table: to each name a {_kind(values)}"
    return PLAIN[str(schema["type"])]


def _trust(key: Key) -> str:
    """Which values of a project's file wait for the user's yes."""
    values = [True, False] if key.schema.get("type") == "boolean" else key.schema.get("enum")
    if not isinstance(values, list):
        return TRUST[key.widens]
    opening = [f"`{json.dumps(value)}`" for value in values if key.widens(value)]
    return YES if len(opening) == len(values) else ", ".join(opening) or NO
