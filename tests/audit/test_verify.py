"""Any change to a finished log is found, and an unfinished one is never called whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netsandbox.audit.log import AuditLog
from netsandbox.audit.reader import lines_of
from netsandbox.audit.verify import Report, check, verify
from netsandbox.runtime.private_file import digest

shared_log = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)


def check_bytes(data: bytes) -> Report:
    import io

    return check(lines_of(io.BytesIO(data), "f"), "f")


def whole(report: Report) -> bool:
    return report.complete and not report.problems


def test_a_finished_log_is_whole(finished_log: Path) -> None:
    report = verify(str(finished_log))
    assert report.ok
    assert (report.records, report.files, report.sessions, report.problems) == (8, 1, 1, [])
    assert report.head == digest(finished_log.read_bytes().splitlines()[-1])


@pytest.mark.attack(181)
@shared_log
@given(data=st.data())
def test_181_any_edit_of_any_byte_is_found(finished_log: Path, data: st.DataObject) -> None:
    original = finished_log.read_bytes()
    position = data.draw(st.integers(0, len(original) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != original[position]))
    assert not whole(check_bytes(original[:position] + bytes([byte]) + original[position + 1 :]))


@pytest.mark.attack(181)
@shared_log
@given(data=st.data())
def test_181_any_deletion_of_bytes_is_found(finished_log: Path, data: st.DataObject) -> None:
    original = finished_log.read_bytes()
    start = data.draw(st.integers(0, len(original) - 1))
    end = data.draw(st.integers(start + 1, len(original)))
    assert not whole(check_bytes(original[:start] + original[end:]))


@pytest.mark.attack(181)
@shared_log
@given(data=st.data())
def test_181_any_insertion_is_found(finished_log: Path, data: st.DataObject) -> None:
    original = finished_log.read_bytes()
    position = data.draw(st.integers(0, len(original)))
    extra = data.draw(st.binary(min_size=1, max_size=20) | st.sampled_from(original.splitlines(keepends=True)))
    assert not whole(check_bytes(original[:position] + extra + original[position:]))


@pytest.mark.attack(181)
def test_181_every_deleted_doubled_or_exchanged_line_is_found(finished_log: Path) -> None:
    lines = finished_log.read_bytes().splitlines(keepends=True)
    for first in range(len(lines)):
        without = lines[:first] + lines[first + 1 :]
        assert not whole(check_bytes(b"".join(without)))
        assert not whole(check_bytes(b"".join([*lines[: first + 1], *lines[first:]])))
        for second in range(first + 1, len(lines)):
            swapped = list(lines)
            swapped[first], swapped[second] = swapped[second], swapped[first]
            assert not whole(check_bytes(b"".join(swapped)))


@pytest.mark.attack(181)
def test_181_the_first_broken_line_is_named(finished_log: Path) -> None:
    lines = finished_log.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"example.com", b"example.net")
    problems = check_bytes(b"".join(lines)).problems
    assert [problem.line for problem in problems] == [4]
    assert "line before" in problems[0].text


@pytest.mark.attack(181)
def test_181_rehashing_after_a_deletion_still_leaves_a_gap(finished_log: Path) -> None:
    records = [json.loads(line) for line in finished_log.read_bytes().splitlines()]
    del records[3]
    out, prev = [], records[0]["prev"]
    for record in records:
        record["prev"] = prev
        out.append(json.dumps(record, separators=(",", ":")).encode())
        prev = digest(out[-1])
    problems = check_bytes(b"\n".join(out) + b"\n").problems
    assert any("seq 5 after 3" in problem.text for problem in problems)


def test_a_cut_tail_is_told_from_a_run_that_is_still_going(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog.open(str(path), "s")
    log.write("session.start")
    running = verify(str(path))
    assert (running.ok, running.live, running.complete) == (True, True, False)
    assert "still going" in running.notes[0]
    log.write("session.end")
    log.close()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))
    cut = verify(str(path))
    assert not cut.ok
    assert "no session.end" in cut.notes[0]


@pytest.mark.attack(181)
@pytest.mark.parametrize("missing", ["audit.jsonl.3", "audit.jsonl.2", "audit.jsonl.1", "audit.jsonl"])
def test_181_a_missing_rotated_file_is_found(tmp_path: Path, missing: str) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog.open(str(path), "s", cap_bytes=131072, keep=4)
    for _ in range(1200):
        log.write("egress", verdict="allow", host="a" * 400)
    log.write("session.end")
    log.close()
    assert verify(str(path)).ok
    (tmp_path / missing).unlink()
    if missing == "audit.jsonl":
        path.touch()
    assert not verify(str(path)).ok


@pytest.mark.attack(181)
def test_181_a_line_cut_before_the_records_that_were_rotated_away_is_found(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog.open(str(path), "s", cap_bytes=131072, keep=3)
    for number in range(1200):
        log.write("egress", verdict="allow", host="a" * 400, port=number)
    log.write("session.end")
    log.close()
    assert verify(str(path)).ok
    first = tmp_path / "audit.jsonl.2"
    lines = first.read_bytes().splitlines(keepends=True)
    first.write_bytes(b"".join(lines[:-1]))
    assert not verify(str(path)).ok
    first.write_bytes(b"".join(lines))
    second = tmp_path / "audit.jsonl.1"
    second.write_bytes(b"".join(second.read_bytes().splitlines(keepends=True)[1:]))
    assert not verify(str(path)).ok


def test_an_empty_log_is_not_whole(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").touch()
    assert not verify(str(tmp_path / "audit.jsonl")).ok


def test_a_session_whose_supervisor_was_killed_is_noted(finished_log: Path, tmp_path: Path) -> None:
    lines = finished_log.read_bytes().splitlines(keepends=True)
    finished_log.write_bytes(b"".join(lines[:4]))
    log = AuditLog.open(str(finished_log), "next", cap_bytes=None)
    log.write("session.start")
    log.write("session.end")
    log.close()
    report = verify(str(finished_log))
    assert report.ok
    assert "not sealed" in report.notes[0]


@given(st.binary(max_size=300))
def test_any_bytes_can_be_verified(data: bytes) -> None:
    assert not whole(check_bytes(data))


def test_a_record_of_another_version_is_reported(finished_log: Path) -> None:
    data = finished_log.read_bytes().replace(b'"v":1', b'"v":2', 1)
    assert "version" in check_bytes(data).problems[0].text
