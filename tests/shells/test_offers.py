"""What is offered at the cursor: only what fits, and nothing where a value is free text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.frozen import copy_with
from netsandbox.runtime.option_parser import FILES, OPTIONAL, Option
from netsandbox.shells.offers import ANOTHER, NOTHING_ELSE, PATHS, first_word, later_word
from tests.rig.completing import COMMANDS, HOSTILE

RUN, STOP, AUDIT = COMMANDS
WORDS = st.lists(
    st.sampled_from(["--", "-", "=", "--backend", "-b", "--config=x", "--quiet", "show", "x", "", *HOSTILE]), min_size=1
)


@pytest.mark.parametrize(
    ("words", "also", "offered"),
    [
        (["--na"], NOTHING_ELSE, ["--name"]),
        (["--name", ""], NOTHING_ELSE, []),
        (["--backend=s"], NOTHING_ELSE, ["--backend=seatbelt"]),
        (["--quiet=s"], NOTHING_ELSE, []),
        (["-b", "="], NOTHING_ELSE, ["namespaces", "seatbelt"]),
        (["-b", "=", "x", ""], NOTHING_ELSE, ["profiles-1"]),
        (["--config", "x"], PATHS, []),
        (["--", ""], ANOTHER, []),
        (["profiles-1", "--na"], NOTHING_ELSE, ["--name"]),
        (["cat", "--na"], PATHS, []),
        (["--quiet", "cat", ""], PATHS, []),
    ],
)
def test_options_and_values(words: list[str], also: str, offered: list[str]) -> None:
    offer = later_word(RUN, words, lambda kind: {f"{kind}-1": ""})
    assert (offer.also, [word for word, _ in offer.words]) == (also, offered)


@pytest.mark.parametrize(
    ("words", "also", "offered"),
    [
        (["--overlay", ""], NOTHING_ELSE, ["profiles-1"]),
        (["--overlay="], PATHS, []),
        (["--overlay", "="], PATHS, []),  # bash makes a word of it
        (["--overlay", "=", "s"], PATHS, []),
        (["--overlay", "=", "src", ""], NOTHING_ELSE, ["profiles-1"]),
    ],
)
def test_a_value_that_may_be_left_out_follows_its_equals_sign(words: list[str], also: str, offered: list[str]) -> None:
    option = Option("overlay", OPTIONAL, "", "DIR", "a copy", FILES)
    offer = later_word(copy_with(RUN, options=(option,)), words, lambda kind: {f"{kind}-1": ""})
    assert (offer.also, [word for word, _ in offer.words]) == (also, offered)


def test_a_log_has_a_path_too() -> None:
    offer = later_word(AUDIT, ["show", ""], lambda kind: {f"{kind}-1": "a log"})
    assert offer.lines() == [PATHS, "logs-1\ta log"]
    assert later_word(AUDIT, ["verify", ""], lambda kind: {"x": ""}).lines() == [NOTHING_ELSE]
    assert later_word(STOP, ["--", ""], lambda kind: {"x": ""}).also == NOTHING_ELSE


def test_commands_are_offered_with_what_they_do() -> None:
    assert first_word("st", {"stop": "end it", "run": "x"}).lines() == [NOTHING_ELSE, "stop\tend it"]
    assert [word for word, _ in first_word("--v", {}).words] == ["--version"]


@given(st.sampled_from(COMMANDS), WORDS)
def test_whatever_is_typed_only_what_fits_is_offered(command: object, words: list[str]) -> None:
    offer = later_word(command, words, lambda kind: {"plain": "what it is"})  # type: ignore[arg-type]
    assert all(word.startswith(words[-1]) or words[-1] == "=" for word, _ in offer.words)
    assert all("\n" not in line for line in offer.lines())
