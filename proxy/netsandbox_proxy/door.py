"""The listening sockets of the proxy, with limits for clients, connections and the time of a stage.

Rules: a door that cannot accept (no descriptor left) waits and continues to serve its flows. Past the limit it closes
new connections. No exhausted resource lets anything through (INV-1). One sweep a second over all flows enforces the
deadlines. It costs nothing per byte, and nothing while there is no connection.
"""

from __future__ import annotations

import _socket

from netsandbox.runtime.http.head import HeadCache
from netsandbox.runtime.listener import Listener
from netsandbox.runtime.loop import IN
from netsandbox.runtime.pump import PipePool
from netsandbox.runtime.stream import MAX_BUFFER, Stream, ignore_events
from netsandbox_proxy.flow import Flow
from netsandbox_proxy.replies import CONNECT, TRANSPARENT, refusal_response
from netsandbox_proxy.tunnel import Tunnel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.runtime.loop import Loop, Timer
    from netsandbox_proxy.contract import ExchangeRecorder, Gate, Limits
    from netsandbox_proxy.inspect.client import EngineClient
    from netsandbox_proxy.inspect.secret_places import Placeholders

SWEEP = 1.0  # seconds
SOCKS_VERSION = 5
PREAMBLE_VERSION = 1


class Door:
    """The shared part of both doors, and the `DoorContext` of their flows."""

    name = ""

    def __init__(self, loop: Loop, gate: Gate, listener: _socket.socket, limits: Limits) -> None:
        self.loop = loop
        self.gate = gate
        self.limits = limits
        self.token: bytes | None = None
        self.engine: EngineClient | None = None
        self.placeholders: Placeholders | None = None
        self.har: ExchangeRecorder | None = None
        self.pipes = PipePool()
        self.connect_heads = HeadCache()
        self.pinned_heads = HeadCache()
        self._flows: set[Flow] = set()
        self._sweeper: Timer | None = None
        self._turned_away = 0
        self._closed = False
        if listener.family != _socket.AF_UNIX:
            listener.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)  # accepted sockets inherit it
        self._listener = Listener(loop, listener, self._receive)

    @property
    def flows(self) -> int:
        return len(self._flows)

    def forget(self, flow: Flow) -> None:
        self._flows.discard(flow)
        self.pipes.share(len(self._flows))

    def close(self) -> None:
        """Close the listener, and every flow with a reset."""
        if self._closed:
            return
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._listener.close()
        for flow in tuple(self._flows):
            flow.fail("closed")
        self.pipes.close()

    def start_stage(self, flow: Flow) -> None:
        """Give a new flow its first stage."""
        raise NotImplementedError

    def reply_when_full(self) -> bytes:
        """The reply to a client that connects when the door is full."""
        return b""

    def _receive(self, sock: _socket.socket, source: tuple[str, int]) -> None:
        if len(self._flows) >= self.limits.flows:
            return self._turn_away(sock, source)
        client = Stream(self.loop, sock, ignore_events)
        flow = Flow(self, client, source[:2], self.loop.now() + self.limits.head)
        self._flows.add(flow)
        self.pipes.share(len(self._flows))
        if self._sweeper is None:
            self._sweeper = self.loop.call_later(SWEEP, self._sweep)
        try:
            self.start_stage(flow)
        except OSError:
            flow.fail()
        except Exception:
            flow.fail()
            raise
        return None

    def _turn_away(self, sock: _socket.socket, source: tuple[str, int]) -> None:
        """Close it. One record is written at once; the next sweep records how many more there were."""
        if not self._turned_away:
            self.gate.reject(self.name, "limit", f"more than {self.limits.flows} connections at once", source[:2])
        self._turned_away += 1
        try:
            sock.send(self.reply_when_full())
        except OSError:
            pass
        sock.close()

    def _sweep(self) -> None:
        now = self.loop.now()
        if self._turned_away > 1:
            self.gate.reject(self.name, "limit", f"{self._turned_away} connections turned away in a second", ("", 0))
        self._turned_away = 0
        self._sweeper = self.loop.call_later(SWEEP, self._sweep)
        for flow in [flow for flow in self._flows if flow.deadline <= now]:
            flow.expire(now)
        if not self._flows and self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None


class MixedDoor(Door):
    """HTTP CONNECT, absolute-form HTTP and SOCKS5 on one port, distinguished by the first byte.

    With a token it also accepts redirected connections, which begin with a preamble.
    """

    name = "mixed"

    def __init__(
        self, loop: Loop, gate: Gate, listener: _socket.socket, limits: Limits, token: bytes | None = None
    ) -> None:
        super().__init__(loop, gate, listener, limits)
        self.token = token

    def start_stage(self, flow: Flow) -> None:
        flow.stage = stage = DetectProtocol(flow)
        flow.client.on_ready = stage.on_client
        flow.client.want(IN)

    def reply_when_full(self) -> bytes:
        return refusal_response(503, "limit", "", 0, "too many connections at once; close some and try again")


class DetectProtocol:
    """A stage that waits for the first byte."""

    __slots__ = ("_flow",)

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    def on_client(self, events: int) -> None:
        flow = self._flow
        data = flow.client.read(MAX_BUFFER)
        if data is None:
            return None
        if not data:
            return flow.close("closed")
        known = flow.door.connect_heads.get(data)
        if known is not None:
            return Tunnel(flow, CONNECT).begin(known[0], known[1])
        first = data[0]
        if 65 <= first <= 90 or 97 <= first <= 122:
            from netsandbox_proxy.forward_proxy import ForwardProxy

            return ForwardProxy(flow).begin(data)
        if first == SOCKS_VERSION:
            from netsandbox_proxy.handshakes import SocksHandshake

            return SocksHandshake(flow).begin(data)
        if first == PREAMBLE_VERSION and flow.door.token is not None:
            from netsandbox_proxy.handshakes import PreambleHandshake

            return PreambleHandshake(flow).begin(data)
        flow.door.gate.reject(
            "mixed", "unsupported", f"first byte 0x{first:02x} is neither HTTP nor SOCKS5", flow.source
        )
        return flow.fail()

    def expired(self, now: float) -> None:
        self._flow.door.gate.reject("mixed", "deadline", "nothing was sent in time", self._flow.source)
        self._flow.fail()

    def close(self, outcome: str) -> None:
        """This stage holds only the client."""


def original_destination(sock: _socket.socket) -> tuple[str, int]:
    """Under TPROXY the accepted socket's own address is the destination of the client."""
    host, port = sock.getsockname()[:2]
    return host, port


class TransparentDoor(Door):
    """Every TCP connection to an address that is not a door's, redirected by the kernel."""

    name = "transparent"

    def __init__(
        self,
        loop: Loop,
        gate: Gate,
        listener: _socket.socket,
        limits: Limits,
        destination: Callable[[_socket.socket], tuple[str, int]] = original_destination,
    ) -> None:
        super().__init__(loop, gate, listener, limits)
        self._destination = destination

    def start_stage(self, flow: Flow) -> None:
        address, port = self._destination(flow.client.sock)
        Tunnel(flow, TRANSPARENT).begin(address.encode("ascii"), port, address)
