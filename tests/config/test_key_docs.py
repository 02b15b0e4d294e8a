"""What is said about the keys is so: defaults, trust, options."""

from __future__ import annotations

import json

import pytest

from netsandbox.cli import run
from netsandbox.config.document import layer_of
from netsandbox.config.key_docs import NO, YES, Row, default, rows, schema
from netsandbox.config.keys import KEYS
from netsandbox.config.merging import file_settings, merge

EVERY = [(table, name) for table, keys in KEYS.items() for name in keys]


def row(table: str, name: str) -> Row:
    return next(row for row in rows(table) if row.key == name)


@pytest.mark.parametrize(("table", "name"), EVERY)
def test_every_key_has_a_kind_of_value_a_description_and_its_trust(table: str, name: str) -> None:
    found = row(table, name)
    assert found.kind
    assert found.about
    assert found.trust
    assert "|" not in "".join((found.kind, found.about, found.trust, found.default))


def test_the_options_named_are_options_of_run() -> None:
    known = {option.name for option in run.OPTIONS}
    named = {option for keys in KEYS.values() for key in keys.values() for option in key.options}
    assert named <= known
    lists = {"allow-domain", "deny-domain", "allow-address", "allow-read", "allow-write", "deny-read", "connect-host"}
    assert lists <= named


@pytest.mark.parametrize(
    ("table", "name", "words"),
    [
        ("network", "mode", '`"filtered"`, `"online"`'),
        ("network", "deny_domains", NO),
        ("network", "allow_domains", "unless empty"),
        ("network", "upstream_proxy", YES),
        ("sandbox", "inherit_global", "`false`"),
        ("sandbox", "profiles", "except for `base`, `offline`, `localhost`"),
        ("profiles", "auto_detect", "`true`"),
        ("localhost", "network_strategy", YES),
        ("localhost", "rewrite_engine", NO),
        ("seatbelt", "switches", "unless it begins with `no-`"),
    ],
)
def test_it_says_which_values_need_trust(table: str, name: str, words: str) -> None:
    assert row(table, name).trust == words


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("[network]\nmode = 'filtered'\n", True),
        ("[network]\nmode = 'localhost'\n", False),
        ("[network]\nallow_domains = []\n", False),
        ("[network]\nallow_domains = ['a.test']\n", True),
        ("[sandbox]\nprofiles = ['base']\n", False),
        ("[sandbox]\nprofiles = ['node']\n", True),
        ("[seatbelt]\nswitches = ['no-debug']\n", False),
        ("[seatbelt]\nswitches = ['debug']\n", True),
    ],
)
def test_values_of_an_untrusted_file_need_trust_as_documented(text: str, needs: bool) -> None:
    assert bool(merge([layer_of("f.toml", text.encode(), trusted=False)]).ignored) is needs


def test_a_default_set_in_a_file_changes_nothing() -> None:
    plain = file_settings(merge([]))
    said = [(table, name, default(table, KEYS[table][name])) for table, name in EVERY]
    named = [each for each in said if each[2] is not None]
    assert {("network", "default_ports"), ("limits", "connections"), ("localhost", "port_pool")} <= {
        (table, name) for table, name, _ in named
    }
    for table, name, value in named:
        written = str(value).lower() if isinstance(value, bool) else repr(value)
        layer = layer_of("f.toml", f"[{table}]\n{name} = {written}\n".encode())
        assert file_settings(merge([layer])) == plain, (table, name)


def test_every_key_is_in_the_schema_and_nothing_else_is_allowed() -> None:
    made = json.loads(json.dumps(schema()))
    assert made["additionalProperties"] is False
    for name in ("http", "secret"):  # lists of tables
        assert made["properties"].pop(name)["items"]["additionalProperties"] is False
    assert {table: set(content["properties"]) for table, content in made["properties"].items()} == {
        table: set(keys) for table, keys in KEYS.items()
    }
    for content in made["properties"].values():
        assert content["additionalProperties"] is False
        for key in content["properties"].values():
            assert key["description"]
            assert key.keys() & {"type", "enum"}
