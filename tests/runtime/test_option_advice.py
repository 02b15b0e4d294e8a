"""What was meant by a word that nothing knows: a slip of the pen, another tool's name for an option, a command."""

from __future__ import annotations

import pytest

from netsandbox.cli.main import COMMANDS
from netsandbox.cli.run import OPTIONS
from netsandbox.runtime.option_advice import (
    COMMANDS_MEANT,
    MAX_SHOWN,
    MEANT,
    VERY_NEAR,
    command_advice,
    option_advice,
    with_dashes,
)

KNOWN = [f"--{option.name}" for option in OPTIONS]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("--allow-domian", "--allow-domain"),
        ("--net", "--offline"),
        ("--NET", "--offline"),
        ("--init", "`netsandbox init`"),
        ("--version", "`netsandbox --version`"),
        ("--port", "--publish"),
        ("-e", "--pass-env"),
    ],
)
def test_an_unknown_option_gets_the_one_that_was_meant(name: str, meant: str) -> None:
    assert option_advice(name, KNOWN, "see the help") == f"did you mean {meant}?"


@pytest.mark.parametrize("name", ["--timeout", "-z", "--", "-", "--\x1b[1m"])
def test_an_option_that_resembles_none_gets_none(name: str) -> None:
    assert option_advice(name, KNOWN, "see the help") == "see the help"


def test_within_a_command_only_a_slip_of_the_pen_is_ours() -> None:
    assert option_advice("--version", KNOWN, "other", VERY_NEAR) == "other"
    assert option_advice("--verbos", KNOWN, "other", VERY_NEAR) == "did you mean --verbose?"


def test_only_options_that_the_command_has_are_offered() -> None:
    assert option_advice("--port", ["--all", "--help"], "see the help") == "see the help"


def test_everything_that_is_offered_exists() -> None:
    for meant in MEANT.values():
        command = meant.strip("`").removeprefix("netsandbox ")
        assert meant in KNOWN or command in (*COMMANDS, "--version")
    assert set(COMMANDS_MEANT.values()) <= set(COMMANDS)
    assert set(COMMANDS_MEANT).isdisjoint(COMMANDS)


def test_a_command_is_known_by_other_names_and_with_dashes() -> None:
    assert command_advice("list", COMMANDS, "x") == "did you mean `netsandbox ps`?"
    assert command_advice("--init", COMMANDS, "x") == "did you mean `netsandbox init`?"
    assert command_advice("zzzz", COMMANDS, "x") == "x"


def test_the_command_with_its_dashes_can_be_pasted() -> None:
    shown = with_dashes("netsandbox run", ["-q", "python", "-c", "print('a b')"], 1)
    assert shown == """to run a command write `netsandbox run -q -- python -c 'print('"'"'a b'"'"')'`"""
    hostile = with_dashes("netsandbox run", ["sh", "\x1b[2J" * 900], 0)
    assert hostile.isprintable()
    assert len(hostile) < MAX_SHOWN + 60
