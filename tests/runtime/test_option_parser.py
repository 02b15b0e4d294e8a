"""Options are read strictly: what is not exactly an option is an error, and everything after `--` is the command's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.cli.run import OPTIONS
from netsandbox.errors import UsageError
from netsandbox.runtime.option_parser import FLAG, LIST, OPTIONAL, VALUE, Option, parse

SOME = (
    Option("allow-domain", LIST, "", "PATTERN", "let it through"),
    Option("config", VALUE, "c", "FILE", "read it"),
    Option("quiet", FLAG, "q", "", "say nothing"),
)


def read(*words: str) -> object:
    return parse(words, SOME, "netsandbox run")


def test_both_ways_to_give_a_value() -> None:
    parsed = parse(["--allow-domain", "a", "--allow-domain=b", "-c", "f", "-q"], SOME, "x")
    assert parsed.all("allow-domain") == ["a", "b"]
    assert parsed.values == {"config": "f"}
    assert parsed.flags == {"quiet"}
    assert parsed.all("absent") == []


def test_values_may_hold_equal_signs_be_empty_or_look_like_options() -> None:
    parsed = parse(["--allow-domain=a=b", "--allow-domain=", "--allow-domain", "-q"], SOME, "x")
    assert parsed.all("allow-domain") == ["a=b", "", "-q"]
    assert parsed.flags == set()


def test_after_two_dashes_everything_is_the_command() -> None:
    parsed = parse(["-q", "--", "cmd", "--allow-domain", "--", "-x"], SOME, "x")
    assert parsed.command == ["cmd", "--allow-domain", "--", "-x"]
    assert parse(["-q"], SOME, "x").command is None
    assert parse(["--"], SOME, "x").command == []


@given(st.lists(st.text(max_size=10), max_size=6))
def test_no_word_after_two_dashes_is_ever_read(words: list[str]) -> None:
    parsed = parse(["--", *words], OPTIONS, "netsandbox run")
    assert parsed.command == words
    assert (parsed.flags, parsed.values, parsed.lists, parsed.words) == (set(), {}, {}, [])


@given(st.lists(st.text(max_size=12) | st.sampled_from(["--", "-q", "--online", "--config", "--config=x"]), max_size=6))
def test_any_words_are_read_or_refused_in_one_printable_line(words: list[str]) -> None:
    said = ""
    try:
        parse(words, OPTIONS, "netsandbox run")
    except UsageError as error:
        said = str(error)
    assert said.isprintable()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--allow-domian", "x"], "did you mean --allow-domain?"),
        (["--zzz"], "see `netsandbox run --help`"),
        (["-x"], "unknown option '-x'"),
        (["-qc"], "unknown option"),
        (["--quiet=yes"], "takes no value"),
        (["--config"], "needs a value; write --config FILE"),
        (["--config", "--", "cmd"], "needs a value"),
        (["--Quiet"], "unknown option"),
        (["--allow"], "unknown option"),
    ],
)
def test_what_is_no_option_is_refused_with_advice(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=r".") as caught:
        read(*words)
    assert said in str(caught.value)
    assert caught.value.status == 2


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["python", "-m", "http.server"], "to run a command write `netsandbox run -- python -m http.server`"),
        (["-q", "python", "-m", "a"], "to run a command write `netsandbox run -q -- python -m a`"),
        (["node", "--allow-domian", "x"], "did you mean --allow-domain?"),
        (["node", "--allow-domian", "x", "--", "npm"], "did you mean --allow-domain?"),
        (["node", "--version"], "netsandbox run -- node --version`"),
        (["sh", "-x\x1b"], "-- sh '-x\\x1b'`"),
    ],
)
def test_an_option_after_a_word_may_be_that_of_a_command_without_dashes(words: list[str], advice: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(*words)
    assert str(caught.value).endswith(advice)


def test_the_first_word_may_start_the_command_where_there_are_no_dashes() -> None:
    def starts(arguments: Sequence[str]) -> bool:
        return arguments[0] == "npm"

    parsed = parse(["-q", "npm", "-v", "--nope"], SOME, "x", starts)
    assert (parsed.flags, parsed.words, parsed.command) == ({"quiet"}, [], ["npm", "-v", "--nope"])
    assert parse(["node", "npm"], SOME, "x", starts).words == ["node", "npm"]
    assert parse(["npm", "--", "ls"], SOME, "x", starts).words == ["npm"]
    assert parse(["--", "npm"], SOME, "x", starts).command == ["npm"]


def test_a_command_that_runs_nothing_does_not_speak_of_dashes() -> None:
    with pytest.raises(UsageError, match=r"^unknown option '-z'; see `netsandbox stop --help`$"):
        parse(["shop", "-z"], SOME, "netsandbox stop")


def test_words_are_kept_for_the_subcommand_to_judge() -> None:
    assert parse(["profile", "-", "-q"], SOME, "x").words == ["profile", "-"]


def test_no_two_options_share_a_name_or_a_letter() -> None:
    names = [option.name for option in OPTIONS]
    letters = [option.letter for option in OPTIONS if option.letter]
    assert len(set(names)) == len(names)
    assert len(set(letters)) == len(letters)


def test_an_option_that_takes_one_value_takes_no_second_one() -> None:
    with pytest.raises(UsageError, match="--name was given twice, as 'a' and 'b'; give it once"):
        parse(["--name", "a", "--name=b"], OPTIONS, "netsandbox run")
    assert parse(["--name", "a", "--name=a"], OPTIONS, "netsandbox run").values == {"name": "a"}


def test_a_value_that_may_be_left_out_needs_its_equals_sign() -> None:
    options = (Option("overlay", OPTIONAL, "", "DIR", "a copy"),)
    assert parse(["--overlay", "word"], options, "x").values == {"overlay": ""}
    assert parse(["--overlay", "word"], options, "x").words == ["word"]
    assert parse(["--overlay=src"], options, "x").values == {"overlay": "src"}
    assert parse(["--overlay", "--", "cmd"], options, "x").command == ["cmd"]
    with pytest.raises(UsageError, match="given twice"):
        parse(["--overlay", "--overlay=src"], options, "x")
    assert options[0].taken == "[=DIR]"
