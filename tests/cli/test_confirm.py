"""Nothing but a yes is one."""

from __future__ import annotations

import io

import pytest

from netsandbox.cli.confirm import is_yes


@pytest.mark.parametrize(
    ("answer", "agreed"),
    [("y\n", True), (" YES \n", True), ("\n", False), ("", False), ("n\n", False), ("yep\n", False)],
)
def test_an_answer_is_a_yes_or_a_no(
    answer: str, agreed: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert is_yes("Go on?") is agreed
    assert capsys.readouterr() == ("", "Go on? [y/N] ")
