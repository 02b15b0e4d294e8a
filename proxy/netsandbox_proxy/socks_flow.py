"""A stage that speaks the SOCKS5 handshake with the client, then becomes a tunnel."""

from __future__ import annotations

from netsandbox_proxy.final_reply import FinalReply
from netsandbox_proxy.handshake import Handshake
from netsandbox_proxy.reply_style import SOCKS5
from netsandbox_proxy.socks5 import Socks5Reader
from netsandbox_proxy.tunnel import Tunnel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_proxy.flow import Flow


class SocksFlow(Handshake):
    """A refusal is a reply in SOCKS5's own words."""

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
