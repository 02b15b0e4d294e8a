"""The reader of raw rules: lists, words and strings become forms, and every other text is an error with its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt.profile.raw_forms import MAX_DEPTH, Form, RawRuleError, Word, read_forms
from tests.seatbelt_model import values
from tests.seatbelt_model.reader import read

PARAMETERS = {"home": "/Users/me"}


def plain(item: object) -> object:
    """A form of the reader, or of the model's reader, as nested tuples."""
    if isinstance(item, (Form, values.Form)):
        return tuple(plain(each) for each in item.items)
    return item.name if isinstance(item, (Word, values.Symbol)) else item


def test_a_rule_is_a_list_of_words_forms_and_strings() -> None:
    (form,), dropped = read_forms('; a comment (\n(allow file-read*\n (subpath "/a\\"b"))', PARAMETERS)
    assert plain(form) == ("allow", "file-read*", ("subpath", '/a"b'))
    assert (form.head, form.line, dropped) == ("allow", 2, [])


def test_parameters_and_joined_strings_become_the_string_they_stand_for() -> None:
    (form,), _ = read_forms('(x (string-append (param "home") "/a"))', PARAMETERS)
    assert plain(form) == ("x", "/Users/me/a")


def test_a_dropped_backslash_is_noted_with_its_line() -> None:
    (form,), dropped = read_forms('(x\n"\\.")', {})
    assert plain(form) == ("x", ".")
    assert dropped == [(2, ".")]


@pytest.mark.parametrize(
    ("text", "line"),
    [("\n(", 2), ("\n\n)", 3), ('("a', 1), ("(\n#t)", 2), ("('a)", 1), ("word", 1), ("(" * (MAX_DEPTH + 1), 1)],
)
def test_every_other_text_is_an_error_with_its_line(text: str, line: int) -> None:
    with pytest.raises(RawRuleError) as raised:
        read_forms(text, PARAMETERS)
    assert raised.value.line == line


@given(st.text(alphabet='()"\\#;ab* \n-1', max_size=40))
def test_what_it_takes_the_full_reader_reads_in_the_same_way(text: str) -> None:
    try:
        forms, _ = read_forms(text, {})
    except RawRuleError:
        return
    assert str([plain(form) for form in forms]).replace("'", "") == str([plain(form) for form in read(text)]).replace(
        "'", ""
    )
