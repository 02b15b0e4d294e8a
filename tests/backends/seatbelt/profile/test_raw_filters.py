"""Filters of raw rules: all of them are known to the full model, and so are the regular expressions."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt.profile.raw_filters import (
    JOINED_FILTERS,
    NAME_FILTERS,
    PATH_FILTERS,
    WORD_FILTERS,
    check_regex,
)
from netsandbox.backends.seatbelt.profile.raw_forms import RawRuleError
from tests.seatbelt_model.expressions import checked_regex
from tests.seatbelt_model.filter_forms import is_filter


@pytest.mark.parametrize("name", sorted({*JOINED_FILTERS, *NAME_FILTERS, *PATH_FILTERS, *WORD_FILTERS}))
def test_the_model_knows_every_filter(name: str) -> None:
    assert is_filter(name)


@pytest.mark.parametrize(
    "text", ["^/opt/x$", "^org\\.gpgtools\\..*", "^com\\.apple\\.(Security|example).*", "[a-z]+x?"]
)
def test_plain_expressions_are_taken(text: str) -> None:
    check_regex(text, 1)


@pytest.mark.parametrize("text", ["(a+)+", "a{2}", "\\d", "(?i)a", "[[:alpha:]]", "a**", "((a))", "[a\\]]", "a*" * 7])
def test_what_matchers_read_differently_is_refused(text: str) -> None:
    with pytest.raises(RawRuleError, match="is not understood"):
        check_regex(text, 1)


@given(st.text(alphabet="ab.^$*+?()|[]-\\{}", max_size=12))
@example("\\??")
@example("\\(?")
@example("a*\\)*")
def test_what_it_takes_the_model_takes_too(text: str) -> None:
    try:
        check_regex(text, 1)
    except RawRuleError:
        return
    checked_regex(text)
