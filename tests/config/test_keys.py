"""The table of keys: two spellings of one key differ in nothing that counts."""

from __future__ import annotations

import pytest

from netsandbox.config.file_settings import FileSettings
from netsandbox.config.keys import KEYS

PLACES = [(table, name) for table, keys in KEYS.items() for name in keys]


@pytest.mark.parametrize(("table", "name"), PLACES)
def test_an_alias_is_read_and_trusted_like_its_key(table: str, name: str) -> None:
    alias = KEYS[table][name]
    if alias.alias_of is None:
        return
    key = KEYS[alias.alias_of[0]][alias.alias_of[1]]
    assert key.alias_of is None
    assert (alias.field, alias.read, alias.widens, alias.adds) == (key.field, key.read, key.widens, key.adds)
    assert alias.schema == key.schema
    assert alias.about == f"the same as `{'.'.join(alias.alias_of)}`"


def test_every_field_is_one_of_the_settings() -> None:
    settings = FileSettings()
    homes = {"localhost": settings.localhost, "limits": settings.bounds}
    stacked = ("pass_env", "deny_env")  # they become `variables`
    for table, name in PLACES:
        field = KEYS[table][name].field
        assert not field or field in stacked or hasattr(homes.get(table, settings), field), (table, name)
