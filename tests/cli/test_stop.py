"""`netsandbox stop`: silent when all have ended, clear when one has not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.cli.main import dispatch
from netsandbox.cli.stop import read_seconds
from netsandbox.errors import UsageError
from tests.rig.live import LiveSession, killed_session, sessions


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def test_the_named_sessions_end_and_the_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    with sessions({"name": "one"}, {"name": "two"}, {"name": "three"}) as (one, two, three):
        assert dispatch(["stop", "one", two.id]) == 0
        assert (one.stops, two.stops, three.stops) == (1, 1, 0)
        assert not os.path.exists(one.path)
        assert os.path.exists(three.path)
    assert capsys.readouterr() == ("", "")


def test_stop_all_ends_every_session(capsys: pytest.CaptureFixture[str]) -> None:
    killed_session()
    with sessions({"name": "one"}, {"name": "two"}) as started:
        assert dispatch(["stop", "--all"]) == 0
        assert [session.stops for session in started] == [1, 1]
    assert dispatch(["stop", "--all"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_name_twice_is_asked_once() -> None:
    with sessions({"name": "one"}) as (one,):
        assert dispatch(["stop", "one", "one", one.id]) == 0
        assert one.stops == 1


def test_one_that_does_not_end_in_time_is_told_with_what_does(capsys: pytest.CaptureFixture[str]) -> None:
    stubborn = LiveSession(stubborn=True)
    try:
        assert dispatch(["stop", "shop", "--timeout", "0.3"]) == 1
        text = f"netsandbox: shop is still running after 0.3 s; `kill -9 {os.getpid()}` ends it at once\n"
        assert capsys.readouterr() == ("", text)
    finally:
        stubborn.end()


def test_one_that_does_not_answer_is_told_with_its_process(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    strange = LiveSession(stubborn=True, v=99)
    try:
        assert dispatch(["stop", "--all", "--timeout", "0.2"]) == 1
        text = f"netsandbox: {strange.id} does not answer; `kill -9 {os.getpid()}` ends it at once\n"
        assert capsys.readouterr() == ("", text)
        monkeypatch.setattr("netsandbox.cli.stop.pid_of", lambda _session: None)
        assert dispatch(["stop", "--all", "--timeout", "0"]) == 1
        assert capsys.readouterr().err.endswith("; end its `netsandbox run` with kill -9\n")
    finally:
        strange.end()


def test_an_unknown_name_stops_nobody() -> None:
    with sessions({"name": "one"}) as (one,):
        with pytest.raises(UsageError, match="no running session is called 'two'; choose one of one"):
            dispatch(["stop", "one", "two"])
        assert one.stops == 0


@pytest.mark.attack(190)
@pytest.mark.parametrize("word", ["../../x", "..", "/etc", ""])
def test_a_forged_name_is_refused(word: str) -> None:
    with sessions({}) as (live,):
        with pytest.raises(UsageError):
            dispatch(["stop", word])
        assert live.stops == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [([], "stop needs a NAME or --all; "), (["--all", "shop"], "--all stops every session, not only 'shop'; ")],
)
def test_whom_is_said_once_and_clearly(words: list[str], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        dispatch(["stop", *words])


def test_a_timeout_is_a_number_of_seconds() -> None:
    assert (read_seconds(None), read_seconds("0"), read_seconds("2.5")) == (10, 0, 2.5)


@pytest.mark.parametrize("text", ["", "-1", "1e3", "inf", "nan", "5s", "1.", ".5", "٣", "9" * 400, "86401", "1_0"])
def test_anything_else_is_not(text: str) -> None:
    with pytest.raises(UsageError, match="write for instance --timeout 30"):
        read_seconds(text)
