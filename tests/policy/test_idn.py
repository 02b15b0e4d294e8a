"""An A-label is accepted only in its one spelling, and only where it stands for visible letters."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.idn import to_alabels, valid_alabel

# RFC 3492, section 7.1, the samples in lower case: U-label and punycode.
SAMPLES = {
    "ihqwcrb4cv8a8dqg056pqjye": "\u4ed6\u4eec\u4e3a\u4ec0\u4e48\u4e0d\u8bf4\u4e2d\u6587",
    "mnchen-3ya": "m\u00fcnchen",
    "bcher-kva": "b\u00fccher",
}


@pytest.mark.parametrize("coded", SAMPLES)
def test_known_samples_are_valid_and_are_what_people_write(coded: str) -> None:
    assert valid_alabel(f"xn--{coded}")
    assert to_alabels(SAMPLES[coded]) == f"xn--{coded}"


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_the_codecs_spelling_of_visible_letters_is_valid(text: str) -> None:
    coded = text.encode("punycode").decode("ascii")
    needed = not text.isascii() and all(char.isascii() or char.isprintable() for char in text)
    if not set(text) & set("\u3002\uff0e\uff61\u2024\ufe52"):
        assert valid_alabel(f"xn--{coded}") == needed


@pytest.mark.attack(9)
@given(st.text("abcdefghijklmnopqrstuvwxyz0123456789-", max_size=59))
def test_9_a_valid_label_has_no_second_spelling(coded: str) -> None:
    if valid_alabel(f"xn--{coded}"):
        assert coded.encode("ascii").decode("punycode").encode("punycode") == coded.encode("ascii")


@pytest.mark.parametrize("label", ["xn--mnchen-3ya", "xn--bcher-kva", "xn--4dbrk0ce"])
def test_labels_that_need_punycode_are_valid(label: str) -> None:
    assert valid_alabel(label)


@pytest.mark.parametrize(
    "label", ["xn--", "xn--a", "xn--abc-", "xn---a", "xn--99zzzz9999", "xn--zz\u00e9", "xn--MNCHEN-3YA"]
)
def test_labels_in_another_spelling_or_for_nothing_are_not_valid(label: str) -> None:
    assert not valid_alabel(label)


def test_printable_characters_are_those_outside_the_control_format_and_space_categories() -> None:
    """`idn` asks the string, since the table of categories is a module in a file."""
    beyond = map(chr, range(128, sys.maxunicode + 1))
    assert [c for c in beyond if c.isprintable() != (unicodedata.category(c)[0] not in "CZ")] == []
