"""Reads audit logs, rotated files included, oldest line first; filters records; follows a log that is being written.

A line that is no record is reported, never fatal. The bytes may come from anywhere, so they are treated as hostile:
bounded lines, strict JSON, no FIFOs.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import IO, Any

from netsandbox.audit.record_line import DENY, ENVELOPE, GENESIS, MAX_LINE
from netsandbox.audit.sweep import is_live
from netsandbox.errors import NetsandboxError, UsageError

Record = dict[str, Any]

MAX_ROTATED = 1000
INTERVAL = 0.2  # seconds between two looks at a log that is followed
_SPAN = re.compile(r"([0-9]{1,9})([smhd])", re.ASCII)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of one file: `record`, or `problem` with the reason why it is not a record."""

    file: str
    number: int
    raw: bytes
    record: Record | None
    problem: str | None = None


def log_files(path: str) -> list[str]:
    """The files of the log at *path*, oldest first: path.N … path.1, path.

    A file whose first line begins a chain has no past. Beside a log that the user placed a command can write what it
    likes, and that log is never rotated, so nothing there is taken for an older part of it.
    """
    files = [path]
    while len(files) <= MAX_ROTATED and not _begins_chain(files[-1]) and os.path.exists(f"{path}.{len(files)}"):
        files.append(f"{path}.{len(files)}")
    return files[::-1]


def _begins_chain(path: str) -> bool:
    try:
        with open_log(path) as file:
            return bool(json.loads(file.readline(MAX_LINE + 1)).get("prev") == GENESIS)
    except (NetsandboxError, OSError, ValueError, AttributeError):  # whatever it is, the reader reports it
        return False


def read_lines(path: str) -> Iterator[Line]:
    for file in log_files(path):
        with open_log(file) as stream:
            yield from lines_of(stream, file)


def read_records(path: str) -> Iterator[Record]:
    """Only the well-formed records; `audit verify` reports the others."""
    return (line.record for line in read_lines(path) if line.record is not None)


def open_log(file: str) -> IO[bytes]:
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a path"
        raise NetsandboxError(f"audit log {file!a} cannot be read ({why}); give a session id or a file") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NetsandboxError(f"audit log {file!a} is not a regular file; give a session id or a file")
    return os.fdopen(fd, "rb")


def lines_of(stream: IO[bytes], file: str) -> Iterator[Line]:
    number = 1
    while raw := stream.readline(MAX_LINE + 1):
        if raw.endswith(b"\n"):
            yield parse(raw[:-1], file, number)
        elif len(raw) > MAX_LINE:
            _skip_line(stream)
            yield Line(file, number, raw[:MAX_LINE], None, "longer than any record")
        else:
            yield Line(file, number, raw, None, "torn: the line has no end")
        number += 1


def _skip_line(stream: IO[bytes]) -> None:
    while (piece := stream.readline(MAX_LINE)) and not piece.endswith(b"\n"):
        pass


def parse(raw: bytes, file: str, number: int) -> Line:
    try:
        record = json.loads(raw.decode("ascii"), object_pairs_hook=_unique_keys, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return Line(file, number, raw, None, "not a record")
    problem = _shape_problem(record)
    return Line(file, number, raw, None if problem else record, problem)


def _shape_problem(record: object) -> str | None:
    if not isinstance(record, dict):
        return "not a record"
    missing = [name for name in ENVELOPE if name not in record]
    if missing:
        return f"no {missing[0]}"
    texts = all(isinstance(record[name], str) for name in ("ts", "session", "event", "prev"))
    if not texts or type(record["seq"]) is not int or type(record["v"]) is not int:
        return "a field has the wrong type"
    return None


def _unique_keys(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a key occurs twice")
    return record


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


HTTP_EVENTS = ("http", "http.end")


@dataclass(frozen=True, slots=True)
class Filter:
    """A record passes when it satisfies every condition that is set."""

    denied: bool = False
    host: str | None = None
    since: str | None = None  # a stamp as records carry it, so that text order is time order
    event: str | None = None
    http: bool = False  # requests of inspected connections, and their ends

    def __call__(self, record: Record) -> bool:
        if self.denied and record.get("verdict") != DENY:
            return False
        if self.since is not None and record["ts"] < self.since:
            return False
        if self.event is not None and record["event"] != self.event:
            return False
        if self.http and record["event"] not in HTTP_EVENTS:
            return False
        return self.host is None or host_matches(self.host, record.get("host"))


def host_matches(pattern: str, host: object) -> bool:
    """`example.com` that host, `*.example.com` below it, `**.example.com` both; as rules are written."""
    if not isinstance(host, str):
        return False
    wanted, found = pattern.lower().rstrip("."), host.lower().rstrip(".")
    if wanted.startswith("**."):
        return found == wanted[3:] or found.endswith(wanted[2:])
    if wanted.startswith("*."):
        return found.endswith(wanted[1:]) and len(found) > len(wanted) - 1
    return found == wanted


def span_seconds(text: str) -> int | None:
    """`45s`, `10m`, `2h`, `3d` as seconds; None: it is no such span."""
    span = _SPAN.fullmatch(text)
    return int(span[1]) * _UNITS[span[2]] if span else None


def parse_since(text: str, now: datetime) -> str:
    """`10m`, `2h`, `3d`, `45s` before *now*, or an ISO 8601 moment (UTC unless it says otherwise), as a stamp."""
    span = span_seconds(text)
    try:
        moment = datetime.fromisoformat(text) if span is None else now - timedelta(seconds=span)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
    except (ValueError, OverflowError):
        raise UsageError(f"--since {text!a} is not a time; write 45s, 10m, 2h, 3d or 2025-01-31T12:00:00Z") from None


def follow(path: str, interval: float = INTERVAL) -> Iterator[Record | None]:
    """Every record from the beginning, then each new one; None when all that was written so far has been given.

    Ends when no session writes the log any more.
    """
    stream = open_log(log_files(path)[0])
    try:
        rest = b""
        while True:
            live = is_live(path)  # checked before reading, so that nothing is missed in between
            data = stream.read(1 << 20)
            if data:
                lines, rest = _whole_lines(rest + data, path)
                for line in lines:
                    if line.record is not None:
                        yield line.record
                continue
            newer = _successor(stream, path)
            if newer is not None:
                stream.close()
                stream, rest = newer, b""
            elif not live:
                return
            else:
                yield None
                time.sleep(interval)
    finally:
        stream.close()


def _whole_lines(data: bytes, path: str) -> tuple[list[Line], bytes]:
    *whole, rest = data.split(b"\n")
    return [parse(raw, path, 0) for raw in whole], rest


def _successor(stream: IO[bytes], path: str) -> IO[bytes] | None:
    """The file that was begun when the one we read was rotated, or None while ours is the current one."""
    ours = os.fstat(stream.fileno()).st_ino
    files = log_files(path)
    for position, file in enumerate(files):
        try:
            if os.stat(file).st_ino == ours:
                return open_log(files[position + 1]) if position + 1 < len(files) else None
        except FileNotFoundError:
            continue
    return open_log(path) if os.path.exists(path) else None
