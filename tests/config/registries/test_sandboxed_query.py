from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config.registries.sandboxed_query import variables

NAMES = st.text(st.characters(exclude_characters="\0=", exclude_categories=["Cs"]), min_size=1)
VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(st.dictionaries(NAMES, VALUES))
def test_what_is_told_is_heard(told: dict[str, str]) -> None:
    assert variables("\0".join(f"{name}={value}" for name, value in told.items()).encode()) == told


@given(st.binary())
def test_nonsense_is_no_variable(told: bytes) -> None:
    assert all(name and "\0" not in name + value for name, value in variables(told).items())
