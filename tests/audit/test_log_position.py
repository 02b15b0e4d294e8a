"""What was denied after a place in a log is counted as the session counts it, also across a rotation."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.audit.log import AuditLog
from netsandbox.audit.log_position import LogPosition, denied_since, position
from netsandbox.audit.record_line import MAX_LINE

DENIAL: dict[str, object] = {"verdict": "deny", "reason": "not-allowed", "port": 443}
PID = 4711


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    return AuditLog.open(str(tmp_path / "audit.jsonl"), "s", cap_bytes=2 * MAX_LINE, keep=3)


def place(log: AuditLog) -> LogPosition:
    found = position(log.path)
    assert found is not None
    return found


def hosts(begin: LogPosition, session: str = "s", pid: int = PID) -> list[object]:
    return [key[0] for key in denied_since(begin, session, pid).denied]


def test_what_was_denied_before_is_not_counted(log: AuditLog) -> None:
    log.write("egress", host="before.test", **DENIAL)
    begin = place(log)
    assert hosts(begin) == []
    log.write("dns", host="counted.test", **DENIAL)  # only now, but it was denied before
    log.write("session.exec", command="curl", by_pid=PID)
    log.write("egress", verdict="allow", host="deny", rule='"deny"')
    for _ in range(2):
        log.write("egress", host="after.test", hint="--allow-domain after.test", **DENIAL)
    log.write("session.exec", command="other", by_pid=PID + 1)
    log.write("dns", host="name.test", count=3, **DENIAL)
    found = denied_since(begin, "s", PID)
    assert list(found.denied.items()) == [
        (("after.test", 443, "not-allowed", "--allow-domain after.test", None), 2),
        (("name.test", 443, "not-allowed", None, None), 3),
    ]


def test_it_counts_as_the_session_does(log: AuditLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    own = os.path.realpath(tmp_path)
    begin = place(log)
    file = {"verdict": "deny", "reason": "not-shown", "operation": "read"}
    log.write("file", path=f"{own}/plan.md", count=2, **file)
    log.write("file", path=f"{own}/.bashrc", **file)  # a habit
    log.write("socket", verdict="deny", reason="unix-socket", path="/run/nscd/socket")
    log.write("egress", host="a.test", **DENIAL)
    log.write("audit.fold", of="egress", count=9, verdict="deny", reason="not-allowed")
    found = denied_since(begin, "s", PID)
    assert found.denied_files == log.denied_files == {(f"{own}/plan.md", "read", "not-shown", None): 2}
    assert [key[0] for key in found.denied] == ["a.test"]


def test_a_rotation_hides_nothing(log: AuditLog) -> None:
    log.write("egress", host="before.test", **DENIAL)
    begin = place(log)
    log.write("egress", host="first.test", **DENIAL)
    while not Path(f"{log.path}.1").exists():
        log.write("policy", detail="x" * 400)
    log.write("egress", host="second.test", **DENIAL)
    assert hosts(begin) == ["first.test", "second.test"]


def test_a_log_that_is_gone_or_anothers_has_nothing(log: AuditLog, tmp_path: Path) -> None:
    begin = place(log)
    log.write("egress", host="a.test", **DENIAL)
    assert hosts(begin, session="another") == []
    os.unlink(log.path)
    assert hosts(begin) == []
    assert position(log.path) is None
    assert position("") is None
    assert position("a\0b") is None


def test_lines_that_are_no_records_are_left_out(log: AuditLog) -> None:
    begin = place(log)
    log.write("egress", host="a.test", **DENIAL)
    with Path(log.path).open("ab") as file:
        file.write(b'"deny" {\n{"verdict":"deny"}\n{"verdict":"deny"')
    assert hosts(begin) == ["a.test"]
