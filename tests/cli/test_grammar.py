"""The tables of all commands together: what a shell is told of them is what the commands themselves say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from netsandbox.cli import audit
from netsandbox.cli.grammar import grammar
from netsandbox.cli.main import COMMANDS
from netsandbox.runtime.option_parser import (
    DOMAINS,
    FILES,
    FLAG,
    LOGS,
    OVERLAYS,
    PENDING,
    PROFILES,
    SESSIONS,
    VARIABLES,
)
from netsandbox.shells.grammar import Command, look_up

KINDS = {FILES, VARIABLES, PROFILES, SESSIONS, LOGS, DOMAINS, PENDING, OVERLAYS}
PLAIN = re.compile(r"[a-zA-Z0-9._-]+")
EVENTS = Path(__file__).resolve().parents[2] / "docs" / "audit-log.md"


def known() -> dict[str, Command]:
    return {command.name: command for command in grammar()}


def test_every_command_is_there_in_order() -> None:
    assert tuple(known()) == COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_words_are_a_known_kind_or_plain_words(name: str) -> None:
    command = known()[name]
    said = [command.words, *command.subcommands.values(), *(option.words for option in command.options)]
    assert all(words in KINDS if isinstance(words, str) else all(map(PLAIN.fullmatch, words)) for words in said)
    assert all(map(PLAIN.fullmatch, command.subcommands))


def test_a_flag_has_no_words_and_a_file_is_completed_as_one() -> None:
    options = [option for command in grammar() for option in command.options]
    assert not any(option.words for option in options if option.kind == FLAG)
    assert all(option.words == FILES for option in options if option.value in ("FILE", "PATH"))


def test_what_runs_a_command_says_so() -> None:
    assert known()["run"].runs_command
    assert not known()["stop"].runs_command


@pytest.mark.parametrize("kind", sorted(KINDS - {FILES, VARIABLES}))
def test_what_the_shells_ask_for_can_be_looked_up(kind: str) -> None:
    assert isinstance(look_up(kind), dict)


def test_the_events_are_those_of_the_page() -> None:
    rows = EVENTS.read_text("utf-8").partition("\n## Events\n")[2].partition("\n\n**")[0]
    named = [
        name for row in re.findall(r"^\| (`[^|]*) \|", rows, re.MULTILINE) for name in re.findall(r"`([^`]+)`", row)
    ]
    assert sorted(named) == sorted(audit.EVENTS)
