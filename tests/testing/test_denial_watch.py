"""Which denials a test is blamed for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from netsandbox.testing.denial_watch import SHARED, DenialWatch


def add(path: Path, host: str, *pids: int) -> None:
    with path.open("a") as file:
        file.write(json.dumps({"host": host, "port": None, "reason": "offline", "flag": None, "pids": pids}) + "\n")


def hosts(watch: DenialWatch) -> list[str]:
    return [text.split()[2] for text in watch._new()]


@pytest.mark.parametrize("shared", [True, False])
def test_those_of_our_processes_and_unknown_ones_if_nobody_else_runs_tests(
    tmp_path: Path, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SHARED, "gw0")
    if not shared:
        monkeypatch.delenv(SHARED)
    path = tmp_path / "denials"
    path.touch()
    watch = DenialWatch(str(path), [])
    assert hosts(watch) == []
    add(path, "ours.test", 99, os.getpid(), 2)
    add(path, "theirs.test", 99, 98, 2)
    add(path, "unknown.test")
    assert hosts(watch) == (["ours.test"] if shared else ["ours.test", "unknown.test"])
    assert hosts(watch) == []  # each once
    os.close(watch._file)


def test_a_line_that_is_half_there_waits_for_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SHARED, raising=False)
    path = tmp_path / "denials"
    add(path, "a.test")
    add(path, "b.test")
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    watch = DenialWatch(str(path), [])
    assert hosts(watch) == ["a.test"]
    path.write_bytes(whole)
    assert hosts(watch) == ["b.test"]
    os.close(watch._file)
