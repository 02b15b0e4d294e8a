"""The helper sets a session up in which nothing runs, or the message says why it could not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.backends.namespaces import launch
from netsandbox.doctor import helper_trial
from netsandbox.doctor.helper_trial import helper_failure
from netsandbox.errors import HostError


@pytest.mark.usefixtures("user_namespaces")
def test_a_helper_that_can_is_tried_and_gone_again() -> None:
    before = set(os.listdir("/proc/self/fd"))
    assert helper_failure() is None
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_helper_that_cannot_start_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(launch, "HELPER", str(tmp_path / "none"))
    before = set(os.listdir("/proc/self/fd"))
    assert "reinstall" in (helper_failure() or "")
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_helper_that_ends_at_once_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "HELPER", "/bin/true")
    assert "ended before the sandbox was set up" in (helper_failure() or "")


def test_another_architecture_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_machine: str) -> None:
        raise HostError("no numbers; use another machine")

    monkeypatch.setattr(helper_trial, "syscall_table", unknown)
    assert helper_failure() == "no numbers; use another machine"
