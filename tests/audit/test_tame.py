"""What came from outside is printable ASCII, and can still be told apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit.tame import safe


@pytest.mark.parametrize(
    ("text", "shown"), [("\x1b[2J", "\\x1b[2J"), ("\u202e", "\\u202e"), ("\U0001f600", "\\U0001f600")]
)
def test_what_is_escaped_can_still_be_told_apart(text: str, shown: str) -> None:
    assert safe(text) == shown


@pytest.mark.attack(172)
@given(st.text(max_size=30))
def test_172_nothing_but_printable_ascii_is_left(text: str) -> None:
    assert safe(text).isascii()
    assert not safe(text) or safe(text).isprintable()
