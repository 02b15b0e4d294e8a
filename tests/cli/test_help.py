"""Help texts: every command is in the overview, every option in its group, and what can be repeated has a star."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.cli.help import ABOUT, REPEATED, print_help, print_lines, print_overview, wrapped
from netsandbox.cli.main import COMMANDS, dispatch
from netsandbox.runtime.option_parser import FLAG, LIST, VALUE, Option

SOME = (
    Option("allow", LIST, "", "NAME", "let it through"),
    Option("config", VALUE, "c", "FILE", "read it"),
    Option("quiet", FLAG, "q", "", "say nothing"),
)


def test_the_overview_has_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_overview() == 0
    rows = [line for line in capsys.readouterr().out.partition(":\n  run ")[2].splitlines() if line.startswith("  ")]
    assert {"run", *(row.split()[0] for row in rows if row[2] != " ")} == set(COMMANDS) == set(ABOUT)


@pytest.mark.parametrize("width", [50, 80, 120])
@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_fits_the_terminal_and_breaks_no_word(
    command: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    assert dispatch(["help", command]) == 0
    whole = capsys.readouterr().out.split()
    monkeypatch.setenv("COLUMNS", str(width))
    assert dispatch([command, "--help"]) == 0
    shown = capsys.readouterr()
    assert shown.out.split()[:3] == ["usage:", "netsandbox", command]
    assert (shown.err, shown.out.split()) == ("", whole)
    assert [row for row in shown.out.splitlines() if len(row) > width and " " in row.strip()] == []


def test_options_stand_below_the_title_of_their_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_help("usage: x", SOME, {"first": ("quiet", "allow"), "second": ("config",), "third": ("no",)}) == 0
    titles = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.endswith(":")]
    assert titles == ["first:", "second:"]
    print_help("usage: x", SOME, {"first": ("quiet",)})
    assert "\n\nother options:\n      --allow NAME * " in capsys.readouterr().out


def test_a_star_and_its_meaning_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    print_help("usage: x", SOME)
    shown = capsys.readouterr().out
    assert "--allow NAME * " in shown
    assert shown.endswith(f"\n{REPEATED}\n")
    print_help("usage: x", SOME[1:])
    assert "*" not in capsys.readouterr().out


def test_lines_are_wrapped_on_a_terminal_and_whole_for_a_program(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "log       " + "word " * 10 + "end"
    print_lines([line])
    assert capsys.readouterr().out == f"{line}\n"
    monkeypatch.setattr("netsandbox.cli.help.terminal_width", lambda: 50)
    print_lines([line])
    assert capsys.readouterr().out == f"log       {'word ' * 7}word\n          word word end\n"


def test_text_stays_in_its_column_or_goes_below_a_narrow_one() -> None:
    row = "  -c, --config FILE          " + "read it again " * 4
    assert wrapped(row.rstrip(), 70)[1].startswith(" " * 29 + "read")
    assert wrapped(row.rstrip(), 40)[0] == "  -c, --config FILE"
    assert wrapped("usage: netsandbox run A B", 20) == ["usage: netsandbox", "         run A B"]


@given(
    st.integers(min_value=0, max_value=60),
    st.lists(st.text(alphabet="ab-:…", min_size=1, max_size=30), min_size=1),
    st.integers(min_value=1, max_value=50),
)
def test_wrapping_loses_nothing_and_keeps_to_the_width(margin: int, words: list[str], width: int) -> None:
    line = " " * margin + " ".join(words)
    rows = wrapped(line, width)
    assert " ".join(rows).split() == line.split()
    assert all(len(row) <= width or " " not in row.strip() for row in rows)
