"""The one error a parser raises. It never reaches a user as a traceback: the door answers `status`, records `reason`
and closes, so nothing that failed to parse is ever forwarded (INV-1)."""

from __future__ import annotations


class ProtocolError(Exception):
    """The peer broke the rules. `reason` is of the launcher's closed list; `detail` is for the audit record."""

    def __init__(self, reason: str, detail: str, status: int = 400) -> None:
        super().__init__(reason, detail, status)
        self.reason = reason
        self.detail = detail
        self.status = status

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


def malformed(detail: str) -> ProtocolError:
    return ProtocolError("malformed", detail)
