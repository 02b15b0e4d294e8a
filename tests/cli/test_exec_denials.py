"""What a session was denied while a second command ran, as lines. tests/integration/test_exec.py has real sessions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.audit.log import AuditLog
from netsandbox.cli.exec_denials import RecordedDenials
from netsandbox.session.control import DONE, SETTLE
from tests.rig.live import LiveSession, sessions

LINE = "denied a.test:443 (not-allowed); allow it with --allow-domain a.test"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def deny(log: AuditLog) -> None:
    log.write("egress", verdict="deny", reason="not-allowed", host="a.test", port=443, hint="--allow-domain a.test")


def test_the_session_records_what_it_counted_and_the_lines_are_those_of_run(tmp_path: Path) -> None:
    path = str(tmp_path / "log")

    def settle(live: LiveSession, log: AuditLog) -> None:
        def write(passed: list[int], pid: int, uid: int) -> bytes:
            deny(log)
            return DONE

        live.control.handlers[SETTLE] = write

    with sessions({"audit_log": path}) as (live,):
        log = AuditLog.open(path, live.id)
        deny(log)
        before = RecordedDenials(live.status, ["curl"])
        log.write("session.exec", by_pid=os.getpid())
        assert before.lines(0, is_running=True) == []
        settle(live, log)
        assert before.lines(0, is_running=True) == [
            LINE,
            "session shop keeps its rules until it ends; start it again with the options above",
        ]
    assert before.lines(137, is_running=False) == [LINE]  # nobody answers


def test_a_session_whose_log_is_not_known_has_no_lines() -> None:
    for log in (None, "/no/such/log"):
        recorded = RecordedDenials({"session": "s", "name": "shop", "audit_log": log}, ["curl"])
        assert recorded.lines(0, is_running=True) == []
    assert RecordedDenials({"session": "s", "name": "shop"}, ["curl"]).lines(0, is_running=True) == []
