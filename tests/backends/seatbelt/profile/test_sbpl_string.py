"""Any text becomes exactly one string literal, which reads back as itself, or is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt.profile.sbpl_string import MAX_BYTES, can_be_quoted, quoted
from netsandbox.errors import UsageError
from tests.seatbelt_model.reader import read
from tests.seatbelt_model.values import Form, Symbol

HOSTILE = "\"\\)(;#|\n\r\t\0 \x7f\u2028\u202eaé\U0001f600'`,"


@pytest.mark.attack(139)
@given(st.one_of(st.text(), st.text(alphabet=HOSTILE), st.text(alphabet='"\\')))
def test_a_text_is_one_literal_or_refused(text: str) -> None:
    said = ""
    try:
        assert read(quoted(text)) == [text]
    except UsageError as refusal:
        said = str(refusal)
    assert "\n" not in said
    assert said.isascii()


@pytest.mark.attack(139)
@given(st.text(alphabet=HOSTILE, min_size=1), st.text(alphabet=HOSTILE, min_size=1))
def test_texts_beside_one_another_stay_apart(one: str, other: str) -> None:
    try:
        form = f"(deny file-read* (literal {quoted(one)}) (subpath {quoted(other)}))"
    except UsageError:
        return
    (rule,) = read(form)
    assert isinstance(rule, Form)
    inner = [item for item in rule.items if isinstance(item, Form)]
    assert [item.items[1] for item in inner] == [one, other]
    assert [item.head for item in inner] == ["literal", "subpath"]
    assert [item for item in rule.items if isinstance(item, Symbol)][1].name == "file-read*"


@pytest.mark.attack(139)
@pytest.mark.parametrize(
    "char", ["\0", "\n", "\r", "\t", "\x1b", "\x7f", "\x85", "\x9f", "\u2028", "\u2029", "\u202e", "\u2066", "\udc80"]
)
def test_control_characters_line_ends_and_bytes_that_are_no_text_are_refused(char: str) -> None:
    with pytest.raises(UsageError, match="cannot stand in a Seatbelt profile; rename it"):
        quoted(f"/Users/me/a{char}b")


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("/a b", '"/a b"'),
        ('/a"b', '"/a\\"b"'),
        ("/a\\b", '"/a\\\\b"'),
        ("/a\\", '"/a\\\\"'),
        ('/a"))(allow default)(("', '"/a\\"))(allow default)((\\""'),
        ("/a;b", '"/a;b"'),
        ("/caf\u00e9", '"/caf\u00e9"'),
        ("/Bildschirmfoto 9.41\u202fAM", '"/Bildschirmfoto 9.41\u202fAM"'),
    ],
)
def test_only_quotes_and_backslashes_are_escaped(text: str, literal: str) -> None:
    assert quoted(text) == literal


def test_nothing_and_too_much_are_refused() -> None:
    assert quoted("/" + "a" * (MAX_BYTES - 1))
    for text in ("", "/" + "a" * MAX_BYTES, "/" + "\u00e9" * (MAX_BYTES // 2 + 1)):
        with pytest.raises(UsageError, match="; "):
            quoted(text)


def test_the_refusal_says_what_it_is_about_and_stays_short() -> None:
    with pytest.raises(UsageError) as refusal:
        quoted("/" + "x" * 500 + "\n", "working directory")
    assert str(refusal.value).startswith("the working directory '/xxx")
    assert len(str(refusal.value)) < 250


def test_a_text_can_be_asked_for_whether_it_is_refused() -> None:
    assert can_be_quoted('/a "b"')
    for text in ("", "/a\nb", "/" + "a" * MAX_BYTES):
        assert not can_be_quoted(text)
