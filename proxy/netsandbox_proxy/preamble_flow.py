"""A stage that reads the preamble of a connection that was meant for elsewhere, then becomes a tunnel to there.

From then on it is a transparent connection like any other: the same gate, the same records, and a reset for a refusal.
"""

from __future__ import annotations

from netsandbox_proxy.handshake import Handshake
from netsandbox_proxy.preamble import PreambleReader
from netsandbox_proxy.reply_style import TRANSPARENT
from netsandbox_proxy.tunnel import Tunnel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_proxy.flow import Flow


class PreambleFlow(Handshake):
    """A refusal is a reset: nothing is ever answered."""

    __slots__ = ("_reader",)

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self._reader = PreambleReader(flow.door.token)

    def expired(self, now: float) -> None:
        self._reject("deadline", "preamble not finished in time")

    def _feed(self, data: bytes) -> None:
        reader = self._reader
        reader.feed(data)
        if reader.failed:
            return self._reject(reader.reason, reader.detail)
        if reader.destination is not None:
            address, port = reader.destination
            return Tunnel(self._flow, TRANSPARENT, reader.leftover).begin(address.encode("ascii"), port, address)
        return None

    def _reject(self, reason: str, detail: str) -> None:
        self._flow.door.gate.reject(TRANSPARENT.door, reason, detail, self._flow.source)
        self._flow.fail()
