"""What is read back is what was written, filtered as asked for, and followed over rotations to the end."""

from __future__ import annotations

import io
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit.log import AuditLog
from netsandbox.audit.reader import (
    Filter,
    follow,
    host_matches,
    lines_of,
    log_files,
    open_log,
    parse,
    parse_since,
    read_lines,
    read_records,
)
from netsandbox.audit.record_line import MAX_LINE
from netsandbox.errors import NetsandboxError, UsageError


def test_records_come_in_the_order_they_were_written(finished_log: Path) -> None:
    records = list(read_records(str(finished_log)))
    assert [record["seq"] for record in records] == list(range(1, 9))
    assert [record["event"] for record in records[-2:]] == ["session.end", "audit.seal"]


def test_rotated_files_come_oldest_first(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    for suffix in ("", ".1", ".2", ".10"):
        Path(f"{path}{suffix}").touch()
    assert log_files(str(path)) == [f"{path}.2", f"{path}.1", str(path)]


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"null", b"[]", b"{}", b"{", b"\xff", b"[" * 60_000, b"1" * 5000, b'{"v":NaN}',
        b'{"v":1,"ts":"","seq":1,"session":"","event":"","event":"","prev":""}',
        b'{"v":1,"ts":"","seq":true,"session":"","event":"","prev":""}',
        b'{"v":1,"ts":1,"seq":1,"session":"","event":"","prev":""}',
    ],
)  # fmt: skip
@pytest.mark.attack(185)
def test_185_what_is_no_record_is_reported(raw: bytes) -> None:
    line = parse(raw, "f", 3)
    assert line.record is None
    assert line.problem
    assert (line.file, line.number) == ("f", 3)


@given(st.binary(max_size=400))
def test_any_bytes_can_be_read(data: bytes) -> None:
    lines = list(lines_of(io.BytesIO(data), "f"))
    assert len(lines) == len(data.removesuffix(b"\n").split(b"\n")) if data else not lines


def test_a_torn_or_endless_line_does_not_hide_the_others(finished_log: Path) -> None:
    whole = finished_log.read_bytes()
    finished_log.write_bytes(b"x" * (3 * MAX_LINE) + b"\n" + whole + b'{"v":1')
    lines = list(read_lines(str(finished_log)))
    assert len(lines) == 10
    assert "longer" in str(lines[0].problem)
    assert "torn" in str(lines[-1].problem)
    assert all(line.record for line in lines[1:-1])


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, tmp_path / "missing", "a\0b"):
        with pytest.raises(NetsandboxError, match="give a session id"):
            open_log(str(path))


def test_files_beside_a_log_that_begins_its_chain_are_not_its_past(tmp_path):
    path = tmp_path / "placed.jsonl"
    log = AuditLog.open(str(path), "s1", cap_bytes=None)
    log.write("session.start")
    log.close()
    (tmp_path / "placed.jsonl.1").write_text('{"forged": true}\n')
    assert log_files(str(path)) == [str(path)]


NOW = datetime(2025, 1, 31, 12, 0, tzinfo=UTC)
RECORD = {"ts": "2025-01-31T11:55:00.000000Z", "event": "egress", "verdict": "deny", "host": "www.example.com"}


@pytest.mark.parametrize(
    ("pattern", "host", "matches"),
    [
        ("example.com", "example.com", True),
        ("Example.COM.", "example.com", True),
        ("example.com", "www.example.com", False),
        ("*.example.com", "www.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", ".example.com", False),
        ("**.example.com", "example.com", True),
        ("**.example.com", "a.b.example.com", True),
        ("**.example.com", "badexample.com", False),
        ("example.com", None, False),
        ("example.com", 7, False),
    ],
)
def test_host_patterns_mean_what_they_mean_in_rules(pattern: str, host: object, *, matches: bool) -> None:
    assert host_matches(pattern, host) is matches


@pytest.mark.parametrize(
    ("text", "stamp"),
    [
        ("10m", "2025-01-31T11:50:00.000000Z"),
        ("2h", "2025-01-31T10:00:00.000000Z"),
        ("3d", "2025-01-28T12:00:00.000000Z"),
        ("45s", "2025-01-31T11:59:15.000000Z"),
        ("2025-01-30", "2025-01-30T00:00:00.000000Z"),
        ("2025-01-30T10:00:00+02:00", "2025-01-30T08:00:00.000000Z"),
    ],
)
def test_since_takes_spans_and_moments(text: str, stamp: str) -> None:
    assert parse_since(text, NOW) == stamp


@pytest.mark.parametrize("text", ["", "yesterday", "10", "-5m", "1y", "٣m", "999999999d", "10m\n"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write 45s"):
        parse_since(text, NOW)


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_a_usage_error(text: str) -> None:
    try:
        assert len(parse_since(text, NOW)) == 27
    except UsageError:
        pass


def test_every_condition_must_hold() -> None:
    assert Filter()(RECORD)
    assert Filter(denied=True, host="*.example.com", since="2025-01-31T11:50:00.000000Z", event="egress")(RECORD)
    assert not Filter(denied=True)({**RECORD, "verdict": "allow"})
    assert not Filter(host="example.com")(RECORD)
    assert not Filter(since="2025-01-31T11:56:00.000000Z")(RECORD)
    assert not Filter(event="dns")(RECORD)


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
