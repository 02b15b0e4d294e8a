"""Follows a log that is still being written, over rotations, until its session is over."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import IO

from netsandbox.audit.reader import Line, Record, log_files, open_log, parse
from netsandbox.audit.sweep import is_live

INTERVAL = 0.2


def follow(path: str, interval: float = INTERVAL) -> Iterator[Record | None]:
    """Every record from the beginning, then each new one; None when all that was written so far has been given.

    Ends when nobody writes the log any more.
    """
    stream = open_log(log_files(path)[0])
    try:
        rest = b""
        while True:
            live = is_live(path)  # asked before reading, so that nothing is missed in between
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
