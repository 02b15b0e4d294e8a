"""What came from outside is printable ASCII, and can still be told apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.escape import one_line, safe


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


@pytest.mark.attack(172)
@given(st.text(max_size=30), st.none() | st.integers(1, 40))
def test_172_one_line_keeps_letters_and_nothing_that_a_terminal_obeys(text: str, limit: int | None) -> None:
    shown = one_line(text, limit)
    assert not shown or shown.isprintable()
    if text.isprintable():
        assert shown == (text if limit is None or len(text) <= limit else f"{text[:limit]}…")


@pytest.mark.parametrize(
    ("text", "shown"), [("für/a\x1b[2J", "für/a\\x1b[2J"), ("a\nb", "a\\nb"), ("\u202eevil", "\\u202eevil")]
)
def test_letters_stay_and_the_rest_is_escaped(text: str, shown: str) -> None:
    assert one_line(text) == shown
