"""A log stays within its cap: it is rotated, and a flood of denials is folded."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from netsandbox.audit import log as log_module
from netsandbox.audit.folding import DENIALS_A_SECOND, MAX_DENIALS
from netsandbox.audit.log import AuditLog
from netsandbox.audit.reader import read_records
from netsandbox.audit.verify import verify


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.mark.attack(177)
def test_177_the_files_stay_within_the_cap_and_the_chain_runs_over_all_of_them(path: Path) -> None:
    cap, keep = 131072, 3
    log = AuditLog.open(str(path), "s", cap_bytes=cap, keep=keep)
    log.write("session.start")
    for number in range(1400):
        assert log.write("egress", verdict="allow", reason="rule", host="a" * 8192, port=number)
    log.write("session.end")
    log.close()
    files = sorted(item.name for item in path.parent.iterdir())
    assert files == ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]
    assert all(item.stat().st_size <= cap for item in path.parent.iterdir())
    assert all(item.stat().st_mode & 0o777 == 0o600 for item in path.parent.iterdir())
    report = verify(str(path))
    assert report.ok, report.problems
    assert "rotated away" in report.notes[0]
    records = list(read_records(str(path)))
    rotated = [record for record in records if record["event"] == "audit.rotate"][-1]
    assert rotated["dropped"] == rotated["resumes"] - rotated["kept"] - 1 > 0
    assert rotated["seq"] - 1 - rotated["dropped"] == len([each for each in records if each["seq"] < rotated["seq"]])
    assert log.total("allow") == 1400


@pytest.mark.attack(177, 218)
def test_177_the_first_and_the_last_records_are_never_rotated_away(path: Path) -> None:
    log = AuditLog.open(str(path), "s", cap_bytes=131072, keep=3)
    log.write("session.start")
    for number in range(3000):
        log.write("egress", verdict="allow", reason="rule", host="a" * 400, port=number + 2)
    log.close()
    ports = [record["port"] for record in read_records(str(path)) if record["event"] == "egress"]
    assert ports[:100] == list(range(2, 102))
    assert ports[-100:] == list(range(2902, 3002))
    assert len(ports) < 3000


def flood(log: AuditLog, count: int, reason: str = "not-allowed") -> None:
    for number in range(count):
        assert log.write("dns", verdict="deny", reason=reason, door="dns", host=f"h{number}.test")


@pytest.mark.attack(177, 218)
def test_177_a_flood_of_denials_is_folded_and_every_attempt_is_counted(path: Path) -> None:
    log = AuditLog.open(str(path), "s")
    log.write("session.start")
    flood(log, 50_000)
    assert log.write("egress", verdict="deny", reason="address-guard", address="169.254.169.254", port=80)
    log.write("session.end")
    log.close()
    records = list(read_records(str(path)))
    assert len(records) < MAX_DENIALS + 1000
    hosts = [record["host"] for record in records if record["event"] == "dns"]
    assert hosts[:MAX_DENIALS] == [f"h{number}.test" for number in range(MAX_DENIALS)]
    assert hosts[-1] == "h49999.test"
    folded = [record for record in records if record["event"] == "audit.fold"]
    assert {(record["of"], record["reason"], record["verdict"]) for record in folded} == {
        ("dns", "not-allowed", "deny")
    }
    assert sum(record["count"] for record in folded) + len(hosts) == 50_000
    assert [record["address"] for record in records if record["event"] == "egress"] == ["169.254.169.254"]
    assert log.total("deny") == 50_001
    assert verify(str(path)).ok


@pytest.mark.attack(177)
def test_177_a_flood_that_goes_on_is_recorded_each_second(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("netsandbox.audit.log.time.monotonic", lambda: now)
    log = AuditLog.open(str(path), "s")
    for _ in range(5):
        flood(log, 10_000)
        now += 1
    written = [record for record in read_records(str(path)) if record["event"] == "audit.fold"]
    assert len(written) == 4
    assert not any(log.write("egress", verdict="allow", host=f"a{number}.test") is False for number in range(2))
    folds = [record["count"] for record in read_records(str(path)) if record["event"] == "audit.fold"]
    assert len(folds) == 5
    assert folds[1:4] == [10_000 - DENIALS_A_SECOND - 1] * 3
    log.close()


@pytest.mark.attack(177)
def test_177_a_flood_is_refused_no_later_than_its_log_fails(path: Path) -> None:
    log = AuditLog.open(str(path), "s")
    flood(log, MAX_DENIALS + 10)
    log.close()
    assert log.write("dns", verdict="deny", reason="not-allowed", host="x.test") is False


@pytest.mark.attack(177)
def test_177_held_records_are_rotated_like_others(path: Path) -> None:
    cap = 131072
    log = AuditLog.open(str(path), "s", cap_bytes=cap, keep=3)
    for _ in range(20):
        log.hold()
        assert all(log.write("egress", verdict="allow", host="a" * 400) for _ in range(128))
        assert log.release()
    log.write("session.end")
    log.close()
    assert all(item.stat().st_size <= cap for item in path.parent.iterdir())
    assert verify(str(path)).ok


@pytest.mark.attack(177)
def test_177_a_rotation_that_fails_denies(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = AuditLog.open(str(path), "s", cap_bytes=131072, keep=3)

    def fail(old: str, new: str) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(log_module.os, "rename", fail)
    results = [log.write("egress", verdict="allow", host="a" * 500) for _ in range(300)]
    assert results.index(False) > 100
    assert not any(results[results.index(False) :])
    assert "rotated" in str(log.failed)
    log.close()


def test_a_log_without_cap_is_never_rotated(path: Path) -> None:
    log = AuditLog.open(str(path), "s", cap_bytes=None)
    for _ in range(400):
        log.write("egress", verdict="allow", host="a" * 500)
    log.close()
    assert [item.name for item in path.parent.iterdir()] == ["audit.jsonl"]


def test_a_cap_too_small_for_a_record_is_a_mistake(path: Path) -> None:
    with pytest.raises(ValueError, match="room"):
        AuditLog.open(str(path), "s", cap_bytes=1000)
