"""Probes of files, processes and descriptors report what they achieved and what prevented it."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from netsandbox.doctor.inside.attempts import attempt

ROOT = Path(__file__).parents[3]


def test_files_are_read_and_listed_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "sessions" / "me" / "audit.jsonl"
    monkeypatch.setenv("NETSANDBOX_SESSION", "me")
    assert attempt("read-log", {"state": str(tmp_path)}) == (False, "ENOENT")
    log.parent.mkdir(parents=True)
    log.write_text("four")
    assert attempt("read-log", {"state": str(tmp_path)}) == (True, "read 4 bytes")
    assert attempt("read", {"path": str(log)}) == (True, "read 4 bytes")
    assert attempt("listing", {"path": str(log.parent)}) == (True, "1 names seen")


def test_a_process_that_is_gone_is_not_touched() -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    for name in ("end-process", "trace-process", "read-environment"):
        assert not attempt(name, {"pid": ended.pid})[0]


def test_descriptors_are_counted() -> None:
    code = (
        "from netsandbox.doctor.inside.attempts import attempt\n"
        "import os, sys\n"
        "os.closerange(3, 1024)\n"
        "print(attempt('inherited', {}))\n"
        "os.dup2(0, 9)\n"
        "print(attempt('inherited', {}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "(False, 'only 0, 1 and 2')\n(True, '1 more, the first is 9')\n"


def test_a_device_and_many_files() -> None:
    assert attempt("device", {"path": "/dev/null"}) == (True, "opened")
    assert attempt("device", {"path": "/dev/none"})[0] is False
    assert attempt("many-files", {"count": 10}) == (True, "10 opened")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    try:
        assert attempt("many-files", {"count": 100})[0] is False
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
