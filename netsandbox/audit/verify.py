"""Checks whether a log is unchanged since it was written.

Every line names the hash of the line before it, every session counts its records from 1, and the seal that ends a
session is wholly determined by what precedes it. So an edit, a deletion, an insertion or an exchange anywhere in a
sealed log is found. A chain without a key cannot show that somebody rewrote the log from some line to its end with new
hashes. The head of a log that the user placed is kept (`kept_head`), so that this is found too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from netsandbox.audit import record_line
from netsandbox.audit.kept_head import CHANGED, GONE, Head, kept_heads
from netsandbox.audit.log import END, ROTATE, SEAL
from netsandbox.audit.reader import Line, Record, log_files, read_lines
from netsandbox.audit.record_line import GENESIS
from netsandbox.audit.sweep import is_live
from netsandbox.paths import STOPPED, sessions_dir
from netsandbox.runtime.private_file import digest
from netsandbox.text import single_line

MAX_PROBLEMS = 100

Gap = tuple[Any, Any, Any, Any]  # session, seq and hash of the last line before the gap, seq of the first line after it


@dataclass(frozen=True, slots=True)
class Problem:
    file: str
    line: int
    text: str


@dataclass(slots=True)
class Report:
    """`ok`: nothing is broken and the last session ended, or is still running."""

    path: str
    records: int = 0
    files: int = 0
    sessions: int = 0
    head: str = GENESIS
    complete: bool = False
    live: bool = False
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    last_session: str | None = None

    @property
    def ok(self) -> bool:
        return not self.problems and (self.complete or self.live)

    def add(self, file: str, line: int, text: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(file, line, text))


def verify(path: str) -> Report:
    """Check the log at *path* with its rotated files."""
    live = is_live(path)
    heads = kept_heads()
    found = {head.hash: False for head in heads}
    report = check(read_lines(path), path, found)
    report.files = len(log_files(path))
    report.live = live
    if not report.complete:
        report.notes.append(
            "no session.end yet: the run is still going"
            if live
            else _stopped(path) or "no session.end: the log was cut at its end, or the supervisor was killed"
        )
    kept = _kept_for(report, heads)
    if kept is not None:
        _compare(report, kept, is_found=found[kept.hash])
    elif not os.path.abspath(path).startswith(f"{sessions_dir()}/"):
        report.notes.append("the head of this log was not kept here: a log that was rewritten whole looks the same")
    return report


def _stopped(path: str) -> str:
    """Why the writer stopped, as it says beside a log at its usual place, where no command can write."""
    if not os.path.abspath(path).startswith(f"{sessions_dir()}/"):
        return ""
    try:
        why = os.readlink(f"{path}{STOPPED}")
    except OSError:  # it did not say
        return ""
    return single_line(f"no session.end: the log stopped: {why}; whatever was tried later was refused")


def check(lines: Iterable[Line], path: str, heads: dict[str, bool] | None = None) -> Report:
    """The pure part: follow the chain over *lines*. Each of *heads* that is the hash of a line becomes True."""
    report = Report(path)
    chain = _Chain(report, heads or {})
    for line in lines:
        chain.follow(line)
    chain.finish()
    return report


def _kept_for(report: Report, heads: list[Head]) -> Head | None:
    """The head that was kept for the log's path, or for its last session if the log was moved."""
    place = os.path.abspath(report.path)
    by_path = next((head for head in heads if head.path == place), None)
    return by_path or next((head for head in heads if head.session == report.last_session), None)


def _compare(report: Report, kept: Head, *, is_found: bool) -> None:
    """Compare the log with its kept head. *is_found*: the head is the hash of one of its lines."""
    end = max(report.records, 1)
    if kept.hash != GENESIS and not is_found:
        what = f"record {kept.seq} of session {kept.session}" if kept.seq else f"the line before session {kept.session}"
        report.add(report.path, end, f"lacks {what}, whose hash was kept: replaced, rewritten or cut")
    elif kept.is_done and kept.hash != report.head:
        report.add(report.path, end, f"goes on after session {kept.session}, which was the last to write it")
    fate, _, session = kept.fate.partition(" ")
    if fate == CHANGED:
        report.add(report.path, 1, f"was changed after session {session} and before session {kept.session}")
    elif fate == GONE:
        report.notes.append(f"the log of session {session} at this path was gone when session {kept.session} began")


class _Chain:
    def __init__(self, report: Report, heads: dict[str, bool]) -> None:
        self.report = report
        self.heads = heads
        self.first: Line | None = None
        self.before: Line | None = None  # the line before, whether it is a record or not
        self.last: Record | None = None  # the record before
        self.ended = False  # the record before is session.end
        self.gap: tuple[Line, Gap] | None = None  # where records were rotated away, and the first line after it
        self.rotated: Gap | None = None  # where the newest `audit.rotate` says that they were

    def follow(self, line: Line) -> None:
        if line.record is None:
            self._problem(line, str(line.problem))
        else:
            if self._is_gap(line.record):
                assert self.last is not None
                self.gap = line, (self.last["session"], self.last["seq"], self.report.head, line.record["seq"])
            elif self.before is not None and line.record["prev"] != self.report.head:
                self._problem(line, "does not follow from the line before it: edited, deleted or moved")
            self._follow_record(line, line.record)
        self.before = line
        self.report.head = digest(line.raw)
        if self.report.head in self.heads:
            self.heads[self.report.head] = True

    def _is_gap(self, record: Record) -> bool:
        """Whether records may have been rotated away before this one; `finish` decides it. There is one such place."""
        last = self.last
        follows = last is not None and record["session"] == last["session"] and record["seq"] > last["seq"] + 1
        return follows and record["event"] == ROTATE and self.gap is None

    def _follow_record(self, line: Line, record: Record) -> None:
        self.report.records += 1
        if record["v"] != record_line.VERSION:
            self._problem(line, f"has version {record['v']!a}; this netsandbox knows {record_line.VERSION}")
        if self.gap is None or self.gap[0] is not line:
            self._follow_seq(line, record)
        if record["event"] == SEAL:
            self._check_seal(line, record)
        elif record["event"] == ROTATE:
            self.rotated = (record["session"], record.get("kept"), record.get("kept_head"), record.get("resumes"))
        self.report.complete = record["event"] == SEAL and self.ended
        self.ended = record["event"] == END
        self.first = self.first or line
        self.last = record
        self.report.last_session = record["session"]

    def _follow_seq(self, line: Line, record: Record) -> None:
        if self.last is not None and record["session"] == self.last["session"]:
            if record["seq"] != self.last["seq"] + 1:
                self._problem(line, f"has seq {record['seq']} after {self.last['seq']}: records are missing or moved")
            return
        self.report.sessions += 1
        if self.last is not None and record["seq"] != 1:
            self._problem(line, f"begins its session at seq {record['seq']}: records are missing")
        if self.last is not None and self.last["event"] != SEAL:
            self.report.notes.append(f"session {self.last['session']!a} was not sealed: its supervisor was killed")

    def _check_seal(self, line: Line, record: Record) -> None:
        if self.last is None:
            return
        expected = record_line.line(
            self.last["ts"], record["seq"], record["session"], SEAL, fields={}, prev=str(record["prev"])
        )
        if line.raw != expected:
            self._problem(line, "is not the seal that was written here")

    def finish(self) -> None:
        if self.first is None or self.first.record is None:
            self.report.add(self.report.path, 1, "there is no record in this log")
            return
        record = self.first.record
        if record["seq"] != 1 or record["prev"] != GENESIS:
            self._problem(self.first, f"begins at seq {record['seq']}: the head of the log is missing")
        if self.gap is None:
            return
        line, gap = self.gap
        if gap == self.rotated:
            self.report.notes.append(f"{gap[3] - gap[1] - 1} records in the middle were rotated away")
        else:
            self._problem(line, f"has seq {gap[3]} after {gap[1]}: records are missing or moved")

    def _problem(self, line: Line, text: str) -> None:
        self.report.add(line.file, line.number, text)
