"""Words about switches: what they turn, and which of them a project may not say untrusted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt.profile.profile_settings import ProfileSettings
from netsandbox.backends.seatbelt.profile.session_profile import session_profile
from netsandbox.backends.seatbelt.profile.switches import ON, SWITCHES, WORDS, check_word, turned, widens
from netsandbox.errors import UsageError
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.profile import load
from tests.seatbelt_model.request import Request, lookup


@pytest.mark.parametrize(
    ("words", "on"),
    [
        ((), ("debug", "tool-caches")),
        (("trustd",), ("debug", "tool-caches", "trustd")),
        (("no-debug",), ("tool-caches",)),
        (("no-debug", "debug"), ("debug", "tool-caches")),
        (("trustd", "no-trustd"), ("debug", "tool-caches")),
        (("no-tool-caches", "fsevents", "no-debug"), ("fsevents",)),
    ],
)
def test_the_last_word_about_a_switch_counts(words: tuple[str, ...], on: tuple[str, ...]) -> None:
    assert turned(words) == on


@given(st.lists(st.sampled_from(WORDS)))
def test_words_that_are_said_twice_change_nothing(words: list[str]) -> None:
    assert turned([*words, *words]) == turned(words)
    assert set(ON) <= set(SWITCHES)


@pytest.mark.parametrize("word", ["", "trust", "no-", "no-no-debug", "TRUSTD", "trustd ", "a" * 500, "\x1b[2J"])
def test_another_word_is_an_error_that_names_the_switches(word: str) -> None:
    with pytest.raises(UsageError, match=r"x\.toml:3: there is no switch .*; use one of configd, debug") as caught:
        check_word(word, "x.toml:3")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("word", WORDS)
def test_each_switch_has_a_word_to_open_it_and_one_to_close_it(word: str) -> None:
    assert check_word(word, "x") == word


def test_only_words_that_open_need_trust() -> None:
    assert widens(("no-debug", "trustd"))
    assert widens(("debug",))
    assert not widens(("no-debug", "no-tool-caches"))
    assert widens("no-debug")  # no list: whatever it is, it is not known to close anything


def test_what_is_on_is_open_and_the_rest_is_closed() -> None:
    quiet = load(
        session_profile(ProfileSettings("/Users/me/app", "/Users/me", switches=turned(["no-debug", "trustd"])))
    )
    other = Request("mach-priv-task-port", attributes={"target": "same-sandbox"})
    assert denied_under_all(quiet, other)
    assert allowed_under_all(quiet, lookup("com.apple.trustd.agent"))
    plain = load(session_profile(ProfileSettings("/Users/me/app", "/Users/me", switches=turned([]))))
    assert allowed_under_all(plain, other)
    assert denied_under_all(plain, lookup("com.apple.trustd.agent"))
