"""Our punycode is the interpreter's, and the RFC's."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.idn import valid_alabel
from netsandbox.policy.punycode import DIGITS, decode, encode

# RFC 3492, section 7.1, those in lower case.
SAMPLES = {
    "ihqwcrb4cv8a8dqg056pqjye": "\u4ed6\u4eec\u4e3a\u4ec0\u4e48\u4e0d\u8bf4\u4e2d\u6587",
    "4dbcagdahymbxekheh6e0a7fei0b": "".join(
        map(chr, (0x5DC, 0x5DE, 0x5D4, 0x5D4, 0x5DD, 0x5E4, 0x5E9, 0x5D5, 0x5D8, 0x5DC, 0x5D0, 0x5DE, 0x5D3, 0x5D1))
    )
    + "".join(map(chr, (0x5E8, 0x5D9, 0x5DD, 0x5E2, 0x5D1, 0x5E8, 0x5D9, 0x5EA))),
    "mnchen-3ya": "m\u00fcnchen",
    "bcher-kva": "b\u00fccher",
}


@pytest.mark.parametrize("coded", SAMPLES)
def test_known_samples(coded: str) -> None:
    assert decode(coded) == SAMPLES[coded]
    assert encode(SAMPLES[coded]) == coded


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_it_spells_as_the_interpreters_codec_does_and_reads_it_back(text: str) -> None:
    coded = text.encode("punycode").decode("ascii")
    assert encode(text) == coded
    if coded == coded.lower():
        assert decode(coded) == (text if coded else "")


@given(st.text(DIGITS + "-", max_size=59))
def test_whatever_is_read_is_read_as_the_codec_reads_it(coded: str) -> None:
    """Attack 9: a label is valid only in its one spelling, whoever decodes it."""
    try:
        expected = coded.encode("ascii").decode("punycode")
        again = expected.encode("punycode").decode("ascii")
    except (UnicodeError, OverflowError, ValueError):
        expected, again = "", ""
    if again == coded and coded:
        assert decode(coded) == expected
    else:
        found = decode(coded)
        assert found is None or encode(found) != coded or not coded


@pytest.mark.parametrize("label", ["xn--mnchen-3ya", "xn--bcher-kva", "xn--4dbrk0ce"])
def test_labels_that_need_punycode_are_valid(label: str) -> None:
    assert valid_alabel(label)


@pytest.mark.parametrize("label", ["xn--", "xn--a", "xn--abc-", "xn---a", "xn--99zzzz9999", "xn--zz\u00e9"])
def test_labels_in_another_spelling_or_for_nothing_are_not(label: str) -> None:
    assert not valid_alabel(label)


def test_what_prints_is_what_is_neither_control_nor_format_nor_space() -> None:
    """`idn` asks the string, since the table of categories is a module in a file."""
    beyond = map(chr, range(128, sys.maxunicode + 1))
    assert [c for c in beyond if c.isprintable() != (unicodedata.category(c)[0] not in "CZ")] == []
