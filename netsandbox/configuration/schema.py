"""The JSON Schema of a configuration file, made from the table of keys (pure)."""

from __future__ import annotations

from netsandbox.configuration.keys import KEYS

DIALECT = "https://json-schema.org/draft/2020-12/schema"


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
                "properties": {name: {"description": key.about, **key.schema} for name, key in keys.items()},
            }
            for table, keys in KEYS.items()
        },
    }
