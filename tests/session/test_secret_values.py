"""The values of secrets: from variables, files and commands."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from netsandbox.errors import UsageError
from netsandbox.policy.secret_rules import parse_secret
from netsandbox.session import secret_values
from netsandbox.session.secret_values import read_value

VALUE = "ghp_cAnArYvAlUe0123456789"


def read(source: str, *, optional: bool = False) -> str | None:
    flag = "optional=yes," if optional else ""
    return read_value(parse_secret(f"TOKEN_X@api.example.com,{flag}{source}", "here"), find)


def find(name: str) -> tuple[str, Mapping[str, str]]:
    if name == "planted":
        raise UsageError("the program is planted; look at it")
    return name, os.environ


def test_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_X", VALUE)
    assert read("env=OTHER_X") == VALUE


def test_a_file_whose_last_line_ends(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{VALUE}\r\n")
    assert read(f"file={tmp_path}/token") == VALUE


def test_a_command_runs_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "token").write_text(f"{VALUE}\n")
    assert read("command=sh -c 'echo loud >&2; cat token'") == VALUE


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("env=NOT_SET_X", "the variable NOT_SET_X is not set"),
        ("file=/does/not/exist", "No such file"),
        ("file=/dev/null", "the file /dev/null is empty"),
        ("command=/does/not/exist", "cannot be run: No such file"),
        ("command='", "cannot be run"),
        ("command=''", "cannot be run"),
        ("command=planted", "the program is planted; look at it"),
        ("command=false", "the command false failed with status 1"),
        ("command=echo loud-words-with-a-space and more", "no header carries"),
    ],
)
def test_a_value_that_is_not_there_is_one_line(source: str, cause: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(source)
    text = str(caught.value)
    assert text.startswith("here: the secret TOKEN_X has no value: ")
    assert cause in text
    assert "\n" not in text
    assert read(source, optional=True) is None


def test_a_command_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_values, "SECONDS", 0.2)
    with pytest.raises(UsageError, match=r"did not end in 0\.2 seconds"):
        read("command=sh -c 'sleep 60 & wait'")
