"""A stage that reads the preamble of a connection that was meant for elsewhere, then becomes a tunnel to there.

From then on it is a transparent connection like any other: the same gate, the same records, and a reset for a refusal.
"""

from __future__ import annotations

from netsandbox_proxy.end import IN
from netsandbox_proxy.limits import BUFFER
from netsandbox_proxy.manner import TRANSPARENT
from netsandbox_proxy.preamble import PreambleReader
from netsandbox_proxy.tunnel import Tunnel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_proxy.flow import Flow


class PreambleFlow:
    """The deadline of the flow, set at accept, covers all of the preamble."""

    __slots__ = ("_flow", "_reader")

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._reader = PreambleReader(flow.door.token)

    def begin(self, data: bytes) -> None:
        self._flow.stage = self
        self._flow.client.on_ready = self._on_client
        self._flow.client.want(IN)
        self._feed(data)

    def expired(self, now: float) -> None:
        self._reject("deadline", "preamble not finished in time")

    def close(self, outcome: str) -> None:
        """Nothing is held but the client."""

    def _on_client(self, events: int) -> None:
        data = self._flow.client.read(BUFFER)
        if data is None:
            return None
        if not data:
            return self._flow.close("closed")
        return self._feed(data)

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
