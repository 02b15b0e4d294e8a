"""Stages that read a destination from the client before it becomes a tunnel: the SOCKS5 handshake, and the preamble of
a program that does not know of the proxy.

After its preamble a connection is treated like a transparent one: the same gate, the same records, a reset for a
refusal.
"""

from __future__ import annotations

from netsandbox.runtime.loop import IN
from netsandbox.runtime.stream import MAX_BUFFER
from netsandbox_proxy.parsers.preamble import PreambleReader
from netsandbox_proxy.parsers.socks5 import Socks5Reader
from netsandbox_proxy.replies import SOCKS5, TRANSPARENT, FinalReply
from netsandbox_proxy.tunnel import Tunnel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_proxy.flow import Flow


class Handshake:
    """Reads until the destination is known. The deadline of the flow, set at accept, covers all of it."""

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
        """This stage holds only the client."""

    def _on_client(self, events: int) -> None:
        data = self._flow.client.read(MAX_BUFFER)
        if data is None:
            return None
        if not data:
            return self._flow.close("closed")
        return self._feed(data)

    def _feed(self, data: bytes) -> None:
        raise NotImplementedError


class SocksHandshake(Handshake):
    """Refusals are SOCKS5 replies."""

    __slots__ = ("_reader",)

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self._reader = Socks5Reader(flow.door.token)

    def expired(self, now: float) -> None:
        self._flow.door.gate.reject("socks5", "deadline", "handshake not finished in time", self._flow.source)
        self._flow.fail()

    def _feed(self, data: bytes) -> None:
        flow, reader = self._flow, self._reader
        answer = b"".join(reader.feed(data))
        if reader.failed:
            flow.door.gate.reject("socks5", reader.reason, "handshake refused", flow.source)
            return FinalReply(flow, answer).start()
        if answer and flow.client.send(answer) != len(answer):
            return flow.fail()
        if reader.request is not None:
            return Tunnel(flow, SOCKS5, reader.leftover).begin(*reader.request)
        return None


class PreambleHandshake(Handshake):
    """Refusals are resets: the program does not know of the proxy."""

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
