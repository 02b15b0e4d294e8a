"""A stage that reads from the client until it knows where to; each protocol says how its bytes are read."""

from __future__ import annotations

from netsandbox.runtime.loop import IN
from netsandbox.runtime.stream import MAX_BUFFER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_proxy.flow import Flow


class Handshake:
    """The deadline of the flow, set at accept, covers all of it."""

    __slots__ = ("_flow",)

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    def begin(self, data: bytes) -> None:
        self._flow.stage = self
        self._flow.client.on_ready = self._on_client
        self._flow.client.want(IN)
        self._feed(data)

    def expired(self, now: float) -> None:
        raise NotImplementedError

    def close(self, outcome: str) -> None:
        """Nothing is held but the client."""

    def _on_client(self, events: int) -> None:
        data = self._flow.client.read(MAX_BUFFER)
        if data is None:
            return None
        if not data:
            return self._flow.close("closed")
        return self._feed(data)

    def _feed(self, data: bytes) -> None:
        raise NotImplementedError
