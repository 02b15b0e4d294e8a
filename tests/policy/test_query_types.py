"""One type, one name: what a user writes is compared with what the resolver reads from the wire."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.query_types import canonical_type, type_name


@given(st.integers(0, 65535))
def test_number_and_name_mean_the_same_type(number: int) -> None:
    assert canonical_type(f"TYPE{number}") == type_name(number) == canonical_type(type_name(number).lower())


@pytest.mark.parametrize("text", ["", "TXTX", "TYPE", "TYPE65536", "TYPE-1", "TYPE1 ", "TYPE\u0661", "16"])
def test_an_unknown_type_has_no_name(text: str) -> None:
    assert canonical_type(text) is None


@pytest.mark.parametrize(
    ("number", "name"), [(1, "A"), (28, "AAAA"), (65, "HTTPS"), (255, "ANY"), (65280, "TYPE65280")]
)
def test_record_types_have_the_names_of_the_zone_file(number: int, name: str) -> None:
    assert type_name(number) == name
