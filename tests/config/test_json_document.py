"""JSON files of other sandboxes: read as `json` reads them, but with lines, and strictly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_portmap.localhost_settings import HostPort

from netsandbox.config.document import layer_of
from netsandbox.config.json_document import NAMES, _Walk, parsed_json
from netsandbox.errors import UsageError

texts = st.text(st.characters(exclude_categories=("Cs",)))
leaves = st.one_of(texts, st.integers(-(1 << 63), (1 << 63) - 1), st.booleans(), st.none())
values = st.recursive(leaves, lambda below: st.lists(below, max_size=4) | st.dictionaries(texts, below, max_size=4))

EXAMPLE = """\
{
  "version": "1.0",
  "additional_read_paths": [
    "~/.agent-os",  // shared
    "/opt/custom/library"
  ],
  "additional_write_paths": ["./build", "./dist"],
  "additional_exec_paths": [
    "./scripts"
  ],
  "network_ports": [
    9000,  // "a server"
    5432
  ],
  "environment": {
    "CUSTOM_VAR": "value // no comment"
  }
}
"""


def test_every_name_of_the_example_is_understood_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    layer = layer_of("/project/.claude-sandbox.json", EXAMPLE.encode())
    said: dict[Any, Any] = {place: said.value for place, said in layer.values.items()}
    paths = {
        key: [(rule.path, rule.origin.rpartition(":")[2]) for rule in said["filesystem", key]]
        for key in ("allow_read", "allow_write", "allow_execute")
    }
    assert paths == {
        "allow_read": [("/home/me/.agent-os", "4"), ("/opt/custom/library", "5")],
        "allow_write": [("/project/build", "7"), ("/project/dist", "7")],
        "allow_execute": [("/project/scripts", "9")],
    }
    assert said["localhost", "connect_host"] == (HostPort(5432), HostPort(9000))
    assert said["shell", "set_env"] == (("CUSTOM_VAR", "value // no comment"),)
    assert layer.values["localhost", "connect_host"].items == (
        (9000, "/project/.claude-sandbox.json:12"),
        (5432, "/project/.claude-sandbox.json:13"),
    )


@given(values, st.sampled_from([None, 0, 2]))
def test_what_json_writes_is_read_back(value: object, indent: int | None) -> None:
    assert _Walk("f", json.dumps(value, indent=indent)).document() == value
    assert _Walk("f", json.dumps(value, indent=indent, ensure_ascii=False)).document() == value


@given(st.text(st.sampled_from('{}[]",:/ \n\\u0a1-.etrufalsn'), max_size=24))
def test_nothing_is_read_that_json_would_not_read(text: str) -> None:
    try:
        found = _Walk("f", text).document()
    except UsageError:
        return
    without = "\n".join(line.partition("//")[0] if '"' not in line else line for line in text.split("\n"))
    if "//" not in without:
        assert json.loads(without) == found


@given(st.lists(texts, min_size=1, max_size=5))
def test_each_item_has_its_own_line(items: list[str]) -> None:
    walk = _Walk("f", "[\n" + ",\n".join(map(json.dumps, items)) + "\n]")
    assert walk.document() == items
    assert [walk.lines[number,] for number in range(len(items))] == list(range(2, len(items) + 2))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f:1: invalid JSON"),
        ("[]", "f:1: not an object"),
        ('{"network_ports": [1],\n}', "f:2: invalid JSON: a name in quotation marks is missing"),
        ('{"network_ports": [1,]}', "f:1: invalid JSON"),
        ('{"network_ports": [1]\n"environment": {}}', "f:2: invalid JSON: a comma or } is missing"),
        ('{"network_ports": [1]}\n{}', "f:2: invalid JSON: more than one value"),
        ('{"network_ports": [1],\n"network_ports": [2]}', "f:2: invalid JSON: 'network_ports' is set twice"),
        ('{"network_ports": [01]}', "f:1: invalid JSON"),
        ('{"network_ports": [1.5]}', "f:1: invalid JSON"),
        ('{"network_ports": [99999999999999999999]}', "f:1: invalid JSON"),
        ('{"environment": {"A": "\\ud800"}}', "f:1: invalid JSON: half of a character"),
        ('{"environment": {"A": "x}}', "f:1: invalid JSON"),
        ("[" * 10000, "f:1: invalid JSON: too deep"),
        ('{\n"network_port": [1]}', "f:2: unknown name 'network_port'; did you mean network_ports?"),
        ('{"x": 1}', "f:1: unknown name 'x'; use one of version, additional_read_paths"),
        ('{"version": "2.0"}', "f:1: version '2.0' is not known"),
        ('{"version": 1}', "f:1: version '1' is not known"),
        ('{"network_ports": ["1"]}', "f:1: network_ports has a value of the wrong type; write [5432]"),
        ('{"network_ports": [true]}', "f:1: network_ports has a value of the wrong type"),
        ('{"environment": {"A": 1}}', "f:1: environment has a value of the wrong type"),
        ('{"additional_read_paths": "~/x"}', "f:1: additional_read_paths has a value of the wrong type"),
    ],
)
def test_a_slip_is_an_error_with_file_and_line(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parsed_json("f", text)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"network_ports": [\n70000]}', "70000"),
        ('{"additional_write_paths": [\n"~you/x"]}', "f.json:2: '~you/x' names another user's home"),
        ('{"environment": {"A=B": "x"}}', "f.json:1: "),
    ],
)
def test_values_are_judged_as_those_of_toml(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        layer_of("f.json", text.encode())
    assert message in str(error.value)


def test_every_name_leads_to_a_key() -> None:
    from netsandbox.config.keys import KEYS

    assert all(key in KEYS[table] for table, key, _, _ in NAMES.values())
