"""Documentation made from the table of keys: a row for each key, and the JSON Schema of a configuration file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping

from netsandbox.backends.seatbelt.profile import switches
from netsandbox.config import http_tables, secret_tables
from netsandbox.config.file_settings import FileSettings
from netsandbox.config.key import HARMLESS_PROFILES, Key, always, names_opening, never
from netsandbox.config.keys import KEYS
from netsandbox.frozen import frozen

DIALECT = "http://json-schema.org/draft-07/schema#"  # TOML editors support no later one
SCHEMA_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "netsandbox.schema.json")  # by `make docs`
YES, NO = "yes", "no"
TRUST: dict[Callable[[object], bool], str] = {  # for keys with too many values to list
    always: YES,
    never: NO,
    bool: "unless empty",
    names_opening: f"except for {', '.join(f'`{name}`' for name in HARMLESS_PROFILES)}",
    switches.widens: f"unless it begins with `{switches.NO}`",
}
PLAIN = {"string": "text", "integer": "number", "boolean": "`true`, `false`"}


@frozen
class Row:
    """One key in Markdown; a column that does not apply is empty."""

    key: str
    kind: str
    default: str
    about: str
    trust: str
    options: str


def rows(table: str) -> list[Row]:
    """A row for each key of *table*, in the order of the table of keys."""
    return [_row(table, name, key) for name, key in KEYS[table].items()]


def default(table: str, key: Key) -> object:
    """The value of a key that no file sets; None if it has none, or `Key.default_text` describes it."""
    if key.default_text or not key.field or key.alias_of:
        return None
    settings = FileSettings()
    home = {"localhost": settings.localhost, "limits": settings.bounds}.get(table, settings)
    value: object = getattr(home, key.field, None)
    if isinstance(value, tuple):
        return list(value) or None
    return value


def _row(table: str, name: str, key: Key) -> Row:
    value = default(table, key)
    shown = key.default_text or ("" if value is None else f"`{json.dumps(value)}`")
    options = ", ".join(f"`--{option}`" for option in key.options)
    return Row(name, _kind(key.schema), shown, _about(key), _trust(key), options)


def _about(key: Key) -> str:
    if key.stacks:
        return f"{key.about}; the highest file with an entry for a name decides"
    return f"{key.about}; added up" if key.adds and not key.alias_of else key.about


def _kind(schema: Mapping[str, object]) -> str:
    items, values, choices = schema.get("items"), schema.get("additionalProperties"), schema.get("enum")
    if isinstance(kinds := schema.get("anyOf"), list):
        return " or ".join(map(_kind, kinds))
    if isinstance(choices, list):
        return ", ".join(f'`"{choice}"`' for choice in choices)
    if isinstance(items, dict):
        return f"list of {_kind(items)}{'s' * (items.get('type') == 'integer')}"
    if isinstance(values, dict):
        return f"table of name to {_kind(values)}"
    return PLAIN[str(schema["type"])]


def _trust(key: Key) -> str:
    """Which values in a project's file need the user's trust."""
    values = [True, False] if key.schema.get("type") == "boolean" else key.schema.get("enum")
    if not isinstance(values, list):
        return TRUST[key.widens]
    opening = [f"`{json.dumps(value)}`" for value in values if key.widens(value)]
    return YES if len(opening) == len(values) else ", ".join(opening) or NO


def schema() -> dict[str, object]:
    return {
        "$schema": DIALECT,
        "title": "netsandbox configuration",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            table: {
                "type": "object",
                "additionalProperties": False,
                "properties": {name: _property(table, key) for name, key in keys.items()},
            }
            for table, keys in KEYS.items()
        }
        | {each.TABLE: each.SCHEMA for each in (http_tables, secret_tables)},
    }


def schema_text() -> str:
    """The schema as it is printed and shipped."""
    return json.dumps(schema(), indent=2)


def _property(table: str, key: Key) -> dict[str, object]:
    value = default(table, key)
    return {"description": key.about, **key.schema, **({} if value is None else {"default": value})}
