"""Reads audit logs, rotated files included, oldest line first. What is not a record is reported, never fatal.

The bytes may come from anywhere, so they are read like a hostile input: bounded lines, strict JSON, no FIFOs.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from netsandbox.audit.record_line import ENVELOPE, MAX_LINE
from netsandbox.errors import NetsandboxError
from netsandbox.runtime.digest import GENESIS

Record = dict[str, Any]

MAX_ROTATED = 1000


@dataclass(frozen=True, slots=True)
class Line:
    """One line of one file: `record`, or `problem` saying why it is none."""

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
    """Only the well-formed records; `audit verify` is there to complain about the others."""
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
        record = json.loads(raw.decode("ascii"), object_pairs_hook=_no_twins, parse_constant=_no_constant)
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


def _no_twins(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a key occurs twice")
    return record


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
