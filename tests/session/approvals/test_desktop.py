"""Questions on the desktop: one program of the system at a time, and nothing in its arguments that the command chose
acts as markup, as an option or on a terminal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.session.approvals import desktop
from netsandbox.session.approvals.desktop import (
    MAX_TEXT,
    OSASCRIPT,
    PAUSE,
    TITLE,
    Desktop,
    desktop_program,
    open_desktop,
)
from tests.rig.localhost import eventually

SCENE = {"DISPLAY": ":0", "HOME": "/h", "SECRET_KEY": "k", "PATH": "/evil"}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def recorder(folder: Path, then: str = "true") -> Path:
    """A program that writes its arguments and environment, a line each, and then runs *then*."""
    program = folder / "notify-send"
    program.write_text(
        f"#!/bin/sh\nprintf '%s\\n' \"$@\" > '{folder}/new'\nenv > '{folder}/env'\n"
        f"mv '{folder}/new' '{folder}/arguments'\n{then}\n"
    )
    program.chmod(0o755)
    return program


def told(folder: Path) -> list[str]:
    eventually((folder / "arguments").exists)
    return (folder / "arguments").read_text().splitlines()


def test_there_must_be_a_desktop_and_a_program_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of that name on the search path, where a session may have put it, is not run."""
    program = recorder(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(desktop, "NOTIFY_SEND", ("/nowhere/notify-send",))
    assert desktop_program(SCENE) == ()
    monkeypatch.setattr(desktop, "NOTIFY_SEND", ("/nowhere/notify-send", str(program)))
    assert desktop_program({}) == ()
    assert desktop_program(SCENE) == (str(program), "--app-name=netsandbox", "--", TITLE)
    assert desktop_program({"WAYLAND_DISPLAY": "w"})[0] == str(program)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert open_desktop(Clock()) is None
    monkeypatch.setenv("DISPLAY", ":0")
    assert open_desktop(Clock()) is not None


def test_the_program_gets_the_text_and_few_variables(tmp_path: Path) -> None:
    shown = Desktop((str(recorder(tmp_path)), "--", TITLE), SCENE, Clock())
    shown.notify("curl asks for <b>a&b</b>.test:443\x1b[1m")
    assert told(tmp_path) == ["--", TITLE, "Question: curl asks for &lt;b&gt;a&amp;b&lt;/b&gt;.test:443\\x1b[1m"]
    names = {line.partition("=")[0] for line in (tmp_path / "env").read_text().splitlines()}
    assert {"DISPLAY", "HOME"} <= names <= {"DISPLAY", "HOME", "PWD", "SHLVL", "_"}


def test_a_flood_of_questions_is_one_notice(tmp_path: Path) -> None:
    clock = Clock()
    shown = Desktop((str(recorder(tmp_path, "sleep 60")),), SCENE, clock)
    shown.notify("first")
    assert told(tmp_path) == ["Question: first"]
    (tmp_path / "arguments").unlink()
    clock.now = PAUSE + 1
    shown.notify("second")  # the program still runs
    assert shown._pid is not None
    os.kill(shown._pid, 9)
    eventually(lambda: not shown._is_running())
    clock.now = PAUSE - 1
    shown.notify("third")  # too early
    clock.now = PAUSE + 1
    shown.notify("fourth")
    assert told(tmp_path) == ["Question: fourth"]
    os.kill(shown._pid, 9)
    eventually(lambda: not shown._is_running())


def test_a_program_that_cannot_be_started_is_no_error() -> None:
    Desktop(("/nowhere/notify-send",), SCENE, Clock()).notify("text")


@given(st.text(max_size=400), st.sampled_from(["/usr/bin/notify-send", OSASCRIPT]))
def test_whatever_the_text_is_the_argument_is_plain_and_short(text: str, program: str) -> None:
    argument = Desktop((program,), {}, Clock())._argument(text)
    assert argument.startswith("Question: ")
    assert argument.isascii()
    assert argument.isprintable()
    assert len(argument) <= 10 * MAX_TEXT + 20
    if program != OSASCRIPT:
        assert not set("<>") & set(argument)
