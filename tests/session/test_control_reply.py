"""A session's status is one bounded line of JSON for all values."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit import record_line
from netsandbox.session.control import BOUNDS, MAX_REPLY, TOO_LONG, encode

SCALARS = st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(SCALARS | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(VALUES)
def test_a_reply_decodes_to_the_value_that_was_encoded(value: object) -> None:
    line = encode(value)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert line.isascii()
    assert json.loads(line) == value


def test_bytes_of_a_command_that_are_no_text_survive() -> None:
    assert json.loads(encode(["\udcff"])) == ["\udcff"]


@pytest.mark.parametrize("value", [2**64, -(2**70), float("nan"), float("inf")])
def test_what_json_cannot_say_is_null(value: float) -> None:
    assert encode([value]) == b"[null]\n"


def test_a_long_command_is_cut_until_it_fits() -> None:
    line = encode({"name": "shop", "command": ["\U0001f600" * 5000] * 5000})
    assert len(line) <= MAX_REPLY
    assert json.loads(line)["name"] == "shop"


def test_what_cannot_be_cut_is_not_said_nor_gone_through_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen million texts: each try stops at the text that makes the line too long."""
    said = 0

    def counted(text: str) -> str:
        nonlocal said
        said += 1
        return quote(text)

    quote = record_line.quote
    monkeypatch.setattr(record_line, "quote", counted)
    nested: object = "x" * 64
    for _ in range(4):
        nested = [nested] * 64
    assert encode(nested) == TOO_LONG
    assert said <= len(BOUNDS) * (MAX_REPLY // 64)


def test_a_value_of_no_kind_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError):
        encode({"status": object()})
