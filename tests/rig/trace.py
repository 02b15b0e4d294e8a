"""How a program in a session with closed files shows that it ran: by a FIFO in a folder that the session sees, since it
writes no file of the host that a test could look at."""

from __future__ import annotations

import os
from pathlib import Path


class Trace:
    """`command` is a line of shell that leaves one trace."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._reader = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self.path = path
        self.command = f"echo x > {path}"

    def lines(self) -> list[str]:
        """What was written since the last time."""
        try:
            return os.read(self._reader, 65536).decode().splitlines()
        except BlockingIOError:
            return []

    def close(self) -> None:
        os.close(self._reader)
