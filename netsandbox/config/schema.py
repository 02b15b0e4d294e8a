"""The JSON Schema of a configuration file, made from the table of keys (pure)."""

from __future__ import annotations

import json
import os

from netsandbox.config.key_docs import default
from netsandbox.config.keys import KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.config.key import Key

DIALECT = "http://json-schema.org/draft-07/schema#"  # editors of TOML know no later one
FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "netsandbox.schema.json")  # written by `make docs`


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
        },
    }


def text() -> str:
    """As it is printed and shipped."""
    return json.dumps(schema(), indent=2)


def _property(table: str, key: Key) -> dict[str, object]:
    usual = default(table, key)
    return {"description": key.about, **key.schema, **({} if usual is None else {"default": usual})}
