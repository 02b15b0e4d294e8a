"""A descriptor of this process that a child inherits, and that is above the limit which the child finds."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager

LIMIT, NUMBER = 300, 700


@contextmanager
def high_descriptor() -> Iterator[int]:
    """A socket of the host, which may lead anywhere."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as sock:
        os.dup2(sock.fileno(), NUMBER)
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, before[1]))
    try:
        yield NUMBER
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        os.close(NUMBER)
