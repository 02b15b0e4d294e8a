"""Reads a file of the host in whose place a project, or a session before, may have put something else."""

from __future__ import annotations

import os

MAX_READ = 16 << 20


def read_host_file(path: str | bytes, limit: int = MAX_READ) -> bytes:
    """Without waiting, and in bounds: a pipe may be there, or a link to a device that never ends. OSError or
    ValueError: it cannot be read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    with open(descriptor, "rb", buffering=0) as file:
        return file.read(limit) or b""  # None: a pipe that is empty
