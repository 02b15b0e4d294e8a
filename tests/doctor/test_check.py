"""What every system needs: a place for our state."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.doctor.check import MISSING, OK, state_directory
from netsandbox.errors import HostError


def test_a_state_directory_that_can_be_made_is_well_and_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "a" / "b"))
    assert state_directory().status == OK
    assert os.listdir(tmp_path) == []


def test_a_state_directory_below_a_file_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    check = state_directory()
    assert check.status == MISSING
    assert "XDG_STATE_HOME" in (check.remedy or "")


def test_a_state_directory_that_nobody_can_name_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise HostError("no home; set XDG_STATE_HOME")

    monkeypatch.setattr("netsandbox.doctor.check.state_home", unknown)
    assert state_directory().remedy == "no home; set XDG_STATE_HOME"
