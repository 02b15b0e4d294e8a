"""The listening sockets: who may come in, how many at once, and for how long they may dawdle.

Rules: a door that cannot accept (no descriptor left) waits and goes on serving the flows it has; past the limit it
hangs up on the newcomer; nothing is ever let through because something ran out (INV-1). Deadlines are kept by one
sweep a second over all flows, which costs nothing per byte and nothing when nobody is connected.
"""

from __future__ import annotations

import _socket

from netsandbox.runtime.pipes import PipePool
from netsandbox.runtime.stream import IN, Stream
from netsandbox_proxy.connect_head_cache import ConnectHeadCache
from netsandbox_proxy.flow import Flow
from netsandbox_proxy.limits import BUFFER
from netsandbox_proxy.replies import refusal_response
from netsandbox_proxy.reply_style import CONNECT, TRANSPARENT
from netsandbox_proxy.tunnel import Tunnel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox_proxy.contract import Gate, Loop, Timer
    from netsandbox_proxy.limits import Limits

ACCEPTS = 64  # per round, so that established flows get their turn
PAUSE = 0.1  # seconds without accepting after the kernel ran out of something
SWEEP = 1.0
SOCKS_VERSION = 5
PREAMBLE_VERSION = 1


class Door:
    """What the two doors share. `flows` is the number of client connections."""

    name = ""

    def __init__(self, loop: Loop, gate: Gate, listener: _socket.socket, limits: Limits) -> None:
        self.loop = loop
        self.gate = gate
        self.limits = limits
        self.token: bytes | None = None
        self.pipes = PipePool()
        self.known = ConnectHeadCache()
        self._listener = listener
        self._fd = listener.fileno()
        self._flows: set[Flow] = set()
        self._sweeper: Timer | None = None
        self._pause: Timer | None = None
        self._turned_away = 0
        self._closed = False
        listener.setblocking(False)  # noqa: FBT003 (the C method takes no keyword)
        if listener.family != _socket.AF_UNIX:
            listener.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)  # accepted sockets inherit it
        loop.watch(self._fd, IN, self._on_listener)

    @property
    def flows(self) -> int:
        return len(self._flows)

    def forget(self, flow: Flow) -> None:
        self._flows.discard(flow)

    def close(self) -> None:
        """Hang up on everybody; the listener is closed too."""
        if self._closed:
            return
        self._closed = True
        for timer in (self._sweeper, self._pause):
            if timer is not None:
                timer.cancel()
        self.loop.unwatch(self._fd)
        self._listener.close()
        for flow in tuple(self._flows):
            flow.fail("closed")
        self.pipes.close()

    def welcome(self, flow: Flow) -> None:
        """The first stage of a new flow."""
        raise NotImplementedError

    def last_words(self) -> bytes:
        """For a client that comes when the door is full."""
        return b""

    def _on_listener(self, events: int) -> None:
        accept = self._listener._accept  # type: ignore[attr-defined]  # socket.socket.accept without `socket`
        family, proto = self._listener.family, self._listener.proto
        deadline = self.loop.now() + self.limits.head
        for _ in range(ACCEPTS):
            try:
                fd, source = accept()
            except BlockingIOError:
                return None
            except ConnectionError:  # it left while it was queued
                continue
            except OSError:
                return self._rest()
            sock = _socket.socket(family, _socket.SOCK_STREAM, proto, fd)
            sock.setblocking(False)  # noqa: FBT003 (the C method takes no keyword)
            if len(self._flows) >= self.limits.flows:
                self._turn_away(sock, source)
            else:
                self._admit(sock, source, deadline)
        return None

    def _admit(self, sock: _socket.socket, source: tuple[str, int], deadline: float) -> None:
        client = Stream(self.loop, sock, _unready)
        flow = Flow(self, client, source[:2], deadline)
        self._flows.add(flow)
        if self._sweeper is None:
            self._sweeper = self.loop.call_later(SWEEP, self._sweep)
        try:
            self.welcome(flow)
        except OSError:
            flow.fail()
        except Exception:
            flow.fail()
            raise

    def _rest(self) -> None:
        """Stop accepting for a moment: the queue of the kernel holds the newcomers."""
        self.loop.unwatch(self._fd)
        self._pause = self.loop.call_later(PAUSE, self._resume)

    def _resume(self) -> None:
        self._pause = None
        if not self._closed:
            self.loop.watch(self._fd, IN, self._on_listener)

    def _turn_away(self, sock: _socket.socket, source: tuple[str, int]) -> None:
        """Recorded once between two sweeps, with the number of those that went unrecorded at the next."""
        if not self._turned_away:
            self.gate.reject(self.name, "limit", f"more than {self.limits.flows} connections at once", source[:2])
        self._turned_away += 1
        try:
            sock.send(self.last_words())
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
    """HTTP CONNECT, absolute-form HTTP and SOCKS5 on one port, told apart by the first byte and never again.

    With a token also what comes behind a preamble: connections of programs that know of no proxy.
    """

    name = "mixed"

    def __init__(
        self, loop: Loop, gate: Gate, listener: _socket.socket, limits: Limits, token: bytes | None = None
    ) -> None:
        super().__init__(loop, gate, listener, limits)
        self.token = token

    def welcome(self, flow: Flow) -> None:
        greeting = DetectProtocol(flow)
        flow.stage = greeting
        flow.client.on_ready = greeting.on_client
        flow.client.want(IN)

    def last_words(self) -> bytes:
        return refusal_response(503, "limit", "", 0, "too many connections at once; close some and try again")


class DetectProtocol:
    """A stage that waits for the first byte."""

    __slots__ = ("_flow",)

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    def on_client(self, events: int) -> None:
        flow = self._flow
        data = flow.client.read(BUFFER)
        if data is None:
            return None
        if not data:
            return flow.close("closed")
        known = flow.door.known.recall(data)
        if known is not None:
            return Tunnel(flow, CONNECT).begin(*known)
        first = data[0]
        if 65 <= first <= 90 or 97 <= first <= 122:
            from netsandbox_proxy.forward_proxy import ForwardProxy

            return ForwardProxy(flow).begin(data)
        if first == SOCKS_VERSION:
            from netsandbox_proxy.socks_flow import SocksFlow

            return SocksFlow(flow).begin(data)
        if first == PREAMBLE_VERSION and flow.door.token is not None:
            from netsandbox_proxy.preamble_flow import PreambleFlow

            return PreambleFlow(flow).begin(data)
        flow.door.gate.reject(
            "mixed", "unsupported", f"first byte 0x{first:02x} is neither HTTP nor SOCKS5", flow.source
        )
        return flow.fail()

    def expired(self, now: float) -> None:
        self._flow.door.gate.reject("mixed", "deadline", "nothing was said in time", self._flow.source)
        self._flow.fail()

    def close(self, outcome: str) -> None:
        """Nothing is held but the client."""


def own_name(sock: _socket.socket) -> tuple[str, int]:
    """Under TPROXY the accepted socket's own name is where the client meant to go."""
    host, port = sock.getsockname()[:2]
    return host, port


class TransparentDoor(Door):
    """Every TCP connection that is not for a door, wherever it was going."""

    name = "transparent"

    def __init__(
        self,
        loop: Loop,
        gate: Gate,
        listener: _socket.socket,
        limits: Limits,
        destination: Callable[[_socket.socket], tuple[str, int]] = own_name,
    ) -> None:
        super().__init__(loop, gate, listener, limits)
        self._destination = destination

    def welcome(self, flow: Flow) -> None:
        address, port = self._destination(flow.client.sock)
        Tunnel(flow, TRANSPARENT).begin(address.encode("ascii"), port, address)


def _unready(events: int) -> None:
    """Replaced before the end is watched."""
