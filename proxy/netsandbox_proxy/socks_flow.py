"""A stage that speaks the SOCKS5 handshake with the client, then becomes a tunnel."""

from __future__ import annotations

from netsandbox_proxy.end import IN
from netsandbox_proxy.farewell import Farewell
from netsandbox_proxy.limits import BUFFER
from netsandbox_proxy.manner import SOCKS5
from netsandbox_proxy.socks5 import Socks5Reader
from netsandbox_proxy.tunnel import Tunnel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_proxy.flow import Flow


class SocksFlow:
    """The deadline of the flow, set at accept, covers the whole handshake."""

    __slots__ = ("_flow", "_reader")

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._reader = Socks5Reader(flow.door.token)

    def begin(self, data: bytes) -> None:
        self._flow.stage = self
        self._flow.client.on_ready = self._on_client
        self._flow.client.want(IN)
        self._feed(data)

    def expired(self, now: float) -> None:
        self._flow.door.gate.reject("socks5", "deadline", "handshake not finished in time", self._flow.source)
        self._flow.fail()

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
        flow, reader = self._flow, self._reader
        answer = b"".join(reader.feed(data))
        if reader.failed:
            flow.door.gate.reject("socks5", reader.reason, "handshake refused", flow.source)
            return Farewell(flow, answer).start()
        if answer and flow.client.send(answer) != len(answer):
            return flow.fail()
        if reader.request is not None:
            return Tunnel(flow, SOCKS5, reader.leftover).begin(*reader.request)
        return None
