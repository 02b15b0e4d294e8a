"""A reader that leaves early is no error of ours."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from netsandbox.cli.terminal import confirm

ROOT = Path(__file__).resolve().parents[2]


def test_a_reader_that_left_hears_nothing_and_we_say_nothing():
    script = (
        "from netsandbox.cli.terminal import print_text; print_text('x' * 1000000); print_text('more'); print('silent')"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=-1, stderr=-1) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("answer", "agreed"),
    [("y\n", True), (" YES \n", True), ("\n", False), ("", False), ("n\n", False), ("yep\n", False)],
)
def test_an_answer_is_a_yes_or_a_no(
    answer: str, agreed: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert confirm("Go on?") is agreed
    assert capsys.readouterr() == ("", "Go on? [y/N] ")
