"""Following gives every record once, over rotations, and ends with the session."""

from __future__ import annotations

from pathlib import Path

from netsandbox.audit.follow import follow
from netsandbox.audit.log import AuditLog


def test_a_finished_log_is_given_and_that_is_all(finished_log: Path) -> None:
    assert [record["seq"] for record in follow(str(finished_log)) if record] == list(range(1, 9))


def test_new_records_are_given_over_rotations_until_the_session_ends(tmp_path: Path) -> None:
    path = str(tmp_path / "audit.jsonl")
    log = AuditLog.open(path, "s", cap_bytes=131072, keep=7)
    log.write("session.start")
    seen: list[int] = []
    caught_up = 0
    for record in follow(path, interval=0):
        if record is not None:
            seen.append(record["seq"])
            continue
        caught_up += 1
        assert caught_up < 100
        if caught_up < 3:
            for _ in range(400):
                log.write("egress", verdict="deny", host="a" * 400)
        else:
            log.close()
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) > 801
    assert (tmp_path / "audit.jsonl.2").exists()


def test_lines_that_are_no_records_are_passed_over(finished_log: Path) -> None:
    finished_log.write_bytes(b"junk\n" + finished_log.read_bytes() + b"torn")
    assert len([record for record in follow(str(finished_log)) if record]) == 8
