"""Whatever stands in a log, reading it reports what is no record and goes on."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit.log import AuditLog
from netsandbox.audit.reader import lines_of, log_files, open_log, parse, read_lines, read_records
from netsandbox.audit.record_line import MAX_LINE
from netsandbox.errors import NetsandboxError


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
