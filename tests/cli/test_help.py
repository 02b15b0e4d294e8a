"""Help texts: every command is in the overview, every option in its group, and what can be repeated has a star."""

from __future__ import annotations

import pytest

from netsandbox.cli.help import REPEATED, print_grouped_help, print_help, print_overview
from netsandbox.cli.main import COMMANDS, dispatch
from netsandbox.runtime.option_parser import FLAG, LIST, VALUE, Option

SOME = (
    Option("allow", LIST, "", "NAME", "let it through"),
    Option("config", VALUE, "c", "FILE", "read it"),
    Option("quiet", FLAG, "q", "", "say nothing"),
)


def test_the_overview_has_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_overview() == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.partition("commands:\n")[2].splitlines() if line]
    assert tuple(listed[: len(COMMANDS)]) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_how_it_is_used_and_nothing_else_happens(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch([command, "--help"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(f"usage: netsandbox {command} ")
    assert max(map(len, shown.out.splitlines())) <= 120
    assert shown.err == ""


def test_options_stand_below_the_title_of_their_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_grouped_help("usage: x", SOME, {"first": ("quiet", "allow"), "second": ("config",)}) == 0
    titles = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.endswith(":")]
    assert titles == ["first:", "second:"]


def test_a_star_and_its_meaning_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    print_help("usage: x", SOME)
    shown = capsys.readouterr().out
    assert "--allow NAME * " in shown
    assert shown.endswith(f"\n{REPEATED}\n")
    print_help("usage: x", SOME[1:])
    assert "*" not in capsys.readouterr().out
