"""`netsandbox deny`: a no for exactly what was asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.cli.main import dispatch
from netsandbox.errors import UsageError
from netsandbox.session.approvals.reply import DONE
from tests.rig.live import question, sessions


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_the_answer_is_brought_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    with sessions({"name": "shop", "pending": [question(1001)]}, {"name": "farm", "pending": [question(1001)]}) as live:
        for session in live:
            session.says = DONE
        assert dispatch(["deny", "asked.test", "--session", "farm"]) == 0
        assert [[line for line, _, _ in session.heard] for session in live] == [[], [b'{"op":"deny","id":1001}']]
    assert capsys.readouterr() == ("farm: asked.test:443 is refused until the session ends\n", "")


@pytest.mark.parametrize("words", [[], ["--", "1001"], ["1001", "--session", "unknown"], ["1001", "--for", "user"]])
def test_wrong_words_are_errors_and_nothing_is_answered(words: list[str]) -> None:
    with sessions({"pending": [question(1001)]}) as (shop,):
        with pytest.raises(UsageError):
            dispatch(["deny", *words])
        assert shop.heard == []
