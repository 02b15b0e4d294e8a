"""The writer agrees with the standard library, and cuts what is longer, wider or deeper than its bounds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit.record_line import JsonWriter

SCALARS = st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(SCALARS | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


class Marking(JsonWriter):
    MARKS_CUTS = True


@given(VALUES)
def test_the_text_is_that_of_the_standard_library(value: object) -> None:
    assert JsonWriter(1000, 1000).write(value) == json.dumps(value, separators=(",", ":"))


def test_texts_members_and_depth_are_cut() -> None:
    assert (
        JsonWriter(3, 2, 2).write(["abcdef", {"longer": [[]], "b": 1, "c": 2}, 3]) == '["abc",{"lon":"\\u2026","b":1}]'
    )


def test_cuts_are_marked_where_that_is_wanted() -> None:
    assert Marking(9, 1).write([1, 2, 3]) == '[1,"\\u2026[+2]"]'
    assert Marking(9, 1).write({"a": 1, "b": 2}) == '{"a":1,"\\u2026":1}'


@pytest.mark.parametrize("value", [2**64, -(2**70), float("nan"), float("-inf")])
def test_a_number_that_json_does_not_have_is_null(value: float) -> None:
    assert JsonWriter(9, 9).write(value) == "null"


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError):
        JsonWriter(9, 9).write(object())
