"""`netsandbox man`: the page can be read after every kind of install, with `man` and without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.cli import man as subject
from netsandbox.cli.grammar import grammar
from netsandbox.cli.man import PLACES, laid_out, main
from netsandbox.errors import HostError, UsageError

PAGE = Path(PLACES[1])
EXAMPLE = """\
.\\" Made by a script.
.TH NETSANDBOX 1
.SH NAME
netsandbox \\- run
.B it
.SS run
.PP
.nf
  netsandbox   run\\e
\\&.not a macro
.fi
.TP
\\fB\\-\\-name\\fR \\fIVALUE\\fR *
text of an option that is longer than a row can be
.TP
\\fB\\-q\\fR
"""


def test_a_page_is_laid_out_as_man_does_it() -> None:
    assert "\n".join(laid_out(EXAMPLE, 40)) == (
        "NETSANDBOX(1)\n\nNAME\n       netsandbox - run it\n\n   run\n\n         netsandbox   run\\\n"
        "       .not a macro\n\n"
        "       --name VALUE *\n              text of an option that is\n              longer than a row can be\n\n"
        "       -q"
    )


@given(st.text(max_size=300), st.integers(-3, 200))
def test_every_page_and_width_gives_lines(page: str, width: int) -> None:
    assert all("\n" not in line for line in laid_out(page, width))


def test_in_a_pipe_the_page_has_every_option_and_fits_the_width(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert "\\" not in shown.replace("\\n", "")
    for command in grammar():
        assert f"\n   {command.name}\n" in shown
        assert [option.name for option in command.options if f"--{option.name}" not in shown] == []
    filled = [line for line in shown.splitlines() if line.startswith(" " * 14)]
    assert max(map(len, filled)) <= 100


@pytest.mark.parametrize(
    ("script", "shows"),
    [
        ('cat "$1"', ".TH NETSANDBOX"),
        ("exit 16", "NETSANDBOX(1)"),
        ("echo This system has been minimized; exit 0", "NETSANDBOX(1)"),
        (None, "NETSANDBOX(1)"),
    ],
    ids=["man", "a man that fails", "the stand-in of Ubuntu", "no man"],
)
def test_at_a_terminal_man_shows_it_where_there_is_one(tmp_path: Path, script: str | None, shows: str) -> None:
    if script is not None:
        (tmp_path / "man").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "man").chmod(0o755)
    (tmp_path / "cat").symlink_to("/bin/cat")
    shown = "from netsandbox.cli.man import main; main([])"
    code = f"import pty, sys; sys.exit(pty.spawn([sys.executable, '-c', {shown!r}]))"
    environment = {"PATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path), "PAGER": "/bin/cat", "TERM": "xterm"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert shows in done.stdout
    assert "minimized" not in done.stdout


def test_a_page_that_is_missing_and_words_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="netsandbox help COMMAND"):
        main(["run"])
    monkeypatch.setattr(subject, "PLACES", ("/nonexistent/page",))
    with pytest.raises(HostError, match="install netsandbox again"):
        main([])
