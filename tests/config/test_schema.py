"""The schema is made from the table of keys, and says as much as the readers do."""

from __future__ import annotations

import json

from netsandbox.config.keys import KEYS
from netsandbox.config.schema import schema


def test_every_key_is_in_the_schema_and_nothing_else_is_allowed() -> None:
    made = json.loads(json.dumps(schema()))
    assert made["additionalProperties"] is False
    assert {table: set(content["properties"]) for table, content in made["properties"].items()} == {
        table: set(keys) for table, keys in KEYS.items()
    }
    for content in made["properties"].values():
        assert content["additionalProperties"] is False
        for key in content["properties"].values():
            assert key["description"]
            assert key.keys() & {"type", "enum"}
