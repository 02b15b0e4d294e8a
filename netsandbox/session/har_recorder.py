"""Collects inspected requests for the HAR file. One per session with `--har`.

Rules: nothing here decides or delays a request, and a failure here changes none; what is held for open requests is
bounded, and what goes beyond that is left out of their entries; a request is written once, at its end, at its refusal,
or when its connection is gone.
"""

from __future__ import annotations

import time

from netsandbox_proxy.replies import status_for

from netsandbox.audit.har_entry import HarExchange, entry, opening
from netsandbox.audit.har_file import HarFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from netsandbox_proxy.contract import Grant, Refusal

    from netsandbox.policy.inspection import HttpRequest

MAX_HELD = 64 << 20  # bytes of heads and bodies of open requests
_OVERHEAD = 2048  # of an open request


class HarRecorder:
    """Implements `netsandbox_proxy.contract.ExchangeRecorder`. *bodies*: how many bytes of each body are kept."""

    def __init__(self, path: str, session: str, version: str, bodies: int = 0) -> None:
        self.bodies = bodies
        self.with_query = False
        self.clock: Callable[[], float] = time.monotonic
        self._open: dict[int, dict[int, HarExchange]] = {}  # by connection, and by number
        self._held = 0
        self.file = HarFile(path, opening(f"netsandbox session {session}", time.time(), version))

    def head(self, connection: int, number: int, version: str, headers: Sequence[tuple[str, str]], side: str) -> None:
        found = self._exchange(connection, number)
        if found is None:
            return
        if side == "down":
            found.received = self.clock()
        message = found.request if side == "up" else found.response
        is_kept = self._take(found, sum(len(name) + len(value) for name, value in headers))
        message.version, message.headers = version, headers if is_kept else ()
        message.cut = bool(headers) and not is_kept

    def body(self, connection: int, number: int, data: bytes, side: str) -> None:
        found = self._exchange(connection, number)
        if found is None:
            return
        message = found.request if side == "up" else found.response
        part = data[: max(0, self.bodies - len(message.body))]
        if self._take(found, len(part)):
            message.body += part

    def asked(self, grant: Grant, number: int, request: HttpRequest, refusal: Refusal | None) -> None:
        assert grant.inspection is not None
        found = self._exchange(grant.inspection, number)
        if found is None:
            self.file.left_out += 1
            return
        found.scheme, found.method, found.target = request.scheme, request.method, request.target
        found.place = grant.host, grant.port
        found.started, found.began = time.time(), self.clock()
        if refusal is not None:
            found.comment = f"refused by netsandbox ({refusal.reason}): {refusal.hint}"
            self._end(grant.inspection, number, status_for(refusal.reason))

    def ended(self, grant: Grant, number: int, status: int, sizes: tuple[int, int]) -> None:
        assert grant.inspection is not None
        found = self._open.get(grant.inspection, {}).get(number)
        if found is not None:
            found.request.size, found.response.size = sizes
            self._end(grant.inspection, number, status)

    def lost(self, grant: Grant) -> None:
        """The connection is gone; its open requests get no answer."""
        connection = grant.inspection or 0
        for number, found in tuple(self._open.get(connection, {}).items()):
            found.comment = "the connection ended before the response did"
            self._end(connection, number, found.status)

    def close(self) -> str:
        """A line about what is not in the file; empty if all is."""
        self.file.close()
        if not self.file.left_out:
            return ""
        why = self.file.failure or "too many at once"
        return f"{self.file.left_out} requests are not in {self.file.path!a} ({why}); the audit log has them all"

    def _exchange(self, connection: int, number: int) -> HarExchange | None:
        found = self._open.get(connection, {}).get(number)
        if found is None and self._held + _OVERHEAD <= MAX_HELD:
            found = self._open.setdefault(connection, {})[number] = HarExchange(connection)
            self._take(found, _OVERHEAD)
        return found

    def _take(self, found: HarExchange, size: int) -> bool:
        if self._held + size > MAX_HELD:
            return False
        self._held += size
        found.held += size
        return True

    def _end(self, connection: int, number: int, status: int) -> None:
        found = self._open[connection].pop(number)
        if not self._open[connection]:
            del self._open[connection]
        self._held -= found.held
        if not found.method:  # it was never asked about
            return
        found.status, found.done = status, self.clock()
        self.file.add(entry(found, with_query=self.with_query))
