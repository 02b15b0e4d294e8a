"""A grant in use: who was let through to where, since when, and the promise that its end is recorded exactly once."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.runtime.loop import Loop
    from netsandbox_proxy.contract import Gate, Grant

# How a granted attempt ended; the last word of its audit record.
TLS = "tls"  # relayed, the SNI was the decided name
HTTP = "http"  # relayed request by request, every Host was the decided name
OPAQUE = "opaque"  # relayed, nothing in it could be compared with the name
UNREACHABLE = "unreachable"
UNRECORDED = "unrecorded"  # the audit record could not be written, so nothing was dialled
REFUSED = "refused"  # a denial found after the grant
DEADLINE = "deadline"
RESET = "reset"  # one side vanished
ABANDONED = "abandoned"  # the client left before the gate answered


class ActiveGrant:
    """Made from a grant, closed by `end`."""

    __slots__ = ("address", "gate", "grant", "loop", "open", "started")

    def __init__(self, loop: Loop, gate: Gate, grant: Grant) -> None:
        self.loop = loop
        self.gate = gate
        self.grant = grant
        self.address: str | None = None  # the one that answered
        self.started = loop.now()
        self.open = True

    def end(self, up: int, down: int, outcome: str) -> None:
        if not self.open:
            return
        self.open = False
        milliseconds = int((self.loop.now() - self.started) * 1000)
        self.gate.ended(self.grant, self.address, up, down, milliseconds, outcome)
