"""Denied connections and lookups as they happen, for the pytest plugin, which runs inside the session.

    {"host":"example.org","port":443,"reason":"not-allowed","flag":"--allow-domain example.org","pids":[27,9,2]}

Each attempt is one line, repeats too, and the line is in the file before the command gets its reply. `pids` are the
process of the attempt and its parents as the session numbers them; empty if they are not known. The command may read
the file and cannot write it (INV-8). Nothing is raised here: a denial stands with or without its line.
"""

from __future__ import annotations

import os

from netsandbox.audit.record_line import JsonWriter
from netsandbox.errors import HostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from netsandbox.audit.log import Observer

MAX_LINES = 10_000
REPORTED = ("egress", "udp")  # lookups come by `add`: their records count repeats
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_JSON = JsonWriter(500, 64)


class DenialFile:
    """An observer of `AuditLog`. *lineage* gives the pids of a process on the host; *then* is a further observer."""

    def __init__(self, path: str, lineage: Callable[[int], list[int]], then: Observer | None = None) -> None:
        try:
            self._fd = os.open(path, _FLAGS, 0o600)
        except OSError as error:
            raise HostError(f"denials cannot be written to {path!a}: {error.strerror}; give a new path") from None
        self._lineage = lineage
        self._then = then
        self._left = MAX_LINES

    def __call__(self, event: str, fields: Mapping[str, object]) -> None:
        if event in REPORTED:
            self.add(fields, fields.get("pid"))
        if self._then is not None:
            self._then(event, fields)

    def add(self, fields: Mapping[str, object], pid: object) -> None:
        """Write one line. Past the last one a line without a host says that there were more."""
        if not self._left:
            return
        self._left -= 1
        host = (fields.get("host") or fields.get("address")) if self._left else None
        values = {"host": host, "port": fields.get("port"), "reason": fields.get("reason"), "flag": fields.get("hint")}
        try:
            os.write(self._fd, f"{_JSON.write({**values, 'pids': self._pids(pid)})}\n".encode("ascii"))
        except (OSError, ValueError, TypeError):
            self._left = 0

    def _pids(self, pid: object) -> list[int]:
        try:
            return self._lineage(pid) if type(pid) is int else []
        except (OSError, ValueError):  # it has ended
            return []

    def close(self) -> None:
        os.close(self._fd)
