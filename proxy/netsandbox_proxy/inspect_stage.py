"""The stage of an inspected connection: the engine serves it, on copies of its two sockets.

The supervisor keeps the sockets too, so that it can reset them when the engine is lost, and decides on each request.
Rules: a request is recorded before the engine may pass it on (INV-5); a connection whose engine is gone is reset and
recorded as refused, never relayed (INV-1). Closing our copy of a socket would leave the engine's open, so a connection
that ends is taken from it: shut down, or disconnected, for every copy. With a budget the engine asks before it passes
bytes, and they are counted with the answer; what it did not pass by the end counts no more. `is_overdrawn` compares
with what the kernel sent and handed out.
"""

from __future__ import annotations

import _socket
import ctypes
import fcntl
import sys

from netsandbox.policy.inspection import HttpRequest, RequestEnd
from netsandbox_proxy.contract import Outcome
from netsandbox_proxy.dial import Dial, parent_request
from netsandbox_proxy.flow import NEVER
from netsandbox_proxy.inspect.channel import ChannelError
from netsandbox_proxy.replies import sentence, status_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.policy.budgets import Meter
    from netsandbox.runtime.stream import Stream
    from netsandbox_proxy.contract import ExchangeRecorder, Grant
    from netsandbox_proxy.flow import ActiveGrant, Flow
    from netsandbox_proxy.inspect.client import EngineClient

MAX_OPEN = 1024  # requests of one connection that have no end yet
MAX_DIALS = 64  # connections to the server that are open or being opened
TCP_INFO = 11
ACKNOWLEDGED, RECEIVED = slice(120, 128), slice(128, 136)  # tcpi_bytes_… in struct tcp_info (linux/tcp.h)
HANDSHAKE = 2  # SYN and FIN count as bytes there
UNREAD, UNSENT = 0x541B, 0x5411  # SIOCINQ, SIOCOUTQ (tcp(7)); the second counts what is not acknowledged
NOWHERE = bytes(16)  # struct sockaddr with AF_UNSPEC
LIBC = ctypes.CDLL(None)
FAIR = 64 * 1024  # bytes that one connection gets at a time when little is left


class InspectStage:
    """`begin` passes the connection to the engine."""

    __slots__ = ("_active", "_dials", "_engine", "_flow", "_identity", "_open", "_past", "_servers", "_sizes")

    def __init__(self, flow: Flow, active: ActiveGrant, server: Stream, engine: EngineClient) -> None:
        self._flow = flow
        self._active = active
        self._engine = engine
        self._servers = [_Server(server, active.grant)]
        self._past = (0, 0)  # bytes to and from servers whose connections are over
        self._dials: dict[int, Dial] = {}
        self._open: dict[int, HttpRequest] = {}  # requests without an end
        self._identity = 0
        self._sizes = (0, 0)

    def begin(self, hello: bytes) -> None:
        flow, grant = self._flow, self._active.grant
        flow.stage = self
        flow.deadline = NEVER  # the engine closes idle connections
        flow.client.want(0)
        if flow.client.sock.family == _socket.AF_UNIX:  # an engine that is taken over could give its sockets away by it
            return self.lost()
        try:
            sockets, metered = (flow.client.fd, self._servers[0].stream.fd), grant.meter is not None
            self._identity = self._engine.open(self, grant.host, grant.port, hello, sockets, metered=metered)
        except ChannelError as error:
            self._give_up(str(error))
        return None

    def expired(self, now: float) -> None:
        """Only a dial has a deadline."""
        self._flow.deadline = now + self._flow.door.limits.connect if self._dials else NEVER
        for dial in tuple(self._dials.values()):
            dial.expired()

    def close(self, outcome: str) -> None:
        for dial in self._dials.values():
            dial.close()
        self._dials.clear()
        self._engine.forget(self._identity)
        if self._flow.door.har is not None:
            self._flow.door.har.lost(self._active.grant)
        resets = outcome != Outcome.HTTP
        _take(self._flow.client, resets=resets)
        for server in self._servers:
            _take(server.stream, resets=resets)
            server.stream.abort() if resets else server.stream.close()
        self._active.end(*self._sizes, outcome)

    # From the engine

    def asked(self, n: int, request: HttpRequest) -> dict[str, object]:
        """Decide on a request, and record it; the answer for the engine."""
        if n in self._open or len(self._open) >= MAX_OPEN:
            raise ChannelError("a request was asked about twice, or there are too many")
        door, grant = self._flow.door, self._active.grant
        refusal = door.gate.judge(grant, n, request)
        if door.har is not None:
            door.har.asked(grant, n, request, refusal)
        if refusal is None:
            self._open[n] = request
            return {"allow": True}
        status = status_for(refusal.reason)
        said = sentence(status, refusal.reason, refusal.host, refusal.port)
        return {"allow": False, "status": status, "reason": refusal.reason, "text": f"{said} {refusal.hint}".rstrip()}

    def answered(self, n: int, status: int, sizes: tuple[int, int], milliseconds: int) -> None:
        if n not in self._open:
            raise ChannelError("the end of a request that was not asked about")
        end = RequestEnd(n, self._open.pop(n), status, *sizes, milliseconds)
        self._flow.door.gate.answered(self._active.grant, end)
        if self._flow.door.har is not None:
            self._flow.door.har.ended(self._active.grant, n, status, sizes)

    def head(self, n: int, version: str, headers: list[tuple[str, str]], side: str) -> None:
        """For a HAR file: the head of request *n* or of its response."""
        self._har().head(self._active.grant.inspection or 0, n, version, headers, side)

    def body(self, n: int, data: bytes, side: str) -> None:
        self._har().body(self._active.grant.inspection or 0, n, data, side)

    def _har(self) -> ExchangeRecorder:
        if self._flow.door.har is None:
            raise ChannelError("nobody asked for heads and bodies")
        return self._flow.door.har

    def spend(self, wanted: tuple[int, int], passed: tuple[int, int]) -> tuple[int, int] | None:
        """Count bytes that the engine will pass, as far as the budgets allow. None: nothing is left, and the connection
        is closed. *passed* are those that it did pass so far."""
        meter = self._active.grant.meter
        up, down = wanted
        if meter is None or not (up or down):
            raise ChannelError("bytes without a budget")
        if (up and not meter.left_up()) or (down and not meter.left_down()):
            self._return_unused(meter, *passed)
            self._flow.exceed(self._active)
            return None
        up = _fair(up, meter.left_up())
        meter.charge_up(up)
        down = _fair(down, meter.left_down())
        meter.charge_down(down)
        self._sizes = self._sizes[0] + up, self._sizes[1] + down
        return up, down

    def _return_unused(self, meter: Meter, up: int, down: int) -> None:
        """What was counted and not passed counts no more. The kernel knows better than the engine what passed."""
        sent, taken = self._passed()
        up, down = max(up, sent), max(down, taken)
        if up > self._sizes[0] or down > self._sizes[1]:
            self.lost()
            raise ChannelError("more bytes than were asked about")
        meter.charge_up(up - self._sizes[0])
        meter.charge_down(down - self._sizes[1])
        self._sizes = up, down

    def _passed(self) -> tuple[int, int]:
        """How many bytes the engine has sent to servers and taken from them, by the kernel's account."""
        counts = [self._past, *(server.passed() for server in self._servers)]
        return sum(up for up, _ in counts), sum(down for _, down in counts)

    def is_overdrawn(self) -> bool:
        """Whether more has passed than was counted: the engine is broken then, or somebody else's."""
        if self._active.grant.meter is None:
            return False
        sent, taken = self._passed()
        return sent > self._sizes[0] or taken > self._sizes[1]

    def refused(self, reason: str, detail: str) -> None:
        self._flow.door.gate.refuse(self._active.grant, reason, detail)

    def ended(self, up: int, down: int, outcome: str) -> None:
        meter = self._active.grant.meter
        if meter is None:
            self._sizes = up, down
        else:
            self._return_unused(meter, up, down)
        if outcome == Outcome.HTTP:
            self._flow.close(outcome)
        else:
            self._flow.fail(outcome)

    def lost(self) -> None:
        """The worker that served the connection is gone."""
        self._give_up(None)

    def _give_up(self, detail: str | None) -> None:
        self._flow.door.gate.refuse(self._active.grant, "inspection", detail)
        self._flow.fail(Outcome.REFUSED)

    # Another connection to the server

    def dial(self, n: int) -> None:
        """The server has closed its connection, and there is another request. It is recorded again before it is
        dialled, to an address of the same grant (INV-4, INV-5)."""
        self._drop_ended()
        if n in self._dials or len(self._dials) + len(self._servers) >= MAX_DIALS:
            raise ChannelError("too many dials")
        door = self._flow.door
        self._flow.deadline = door.loop.now() + door.limits.connect

        def connected(server: Stream, address: str, leftover: bytes) -> None:
            self._dials.pop(n, None)
            self._servers.append(_Server(server, self._active.grant))
            self._engine.dialled(self._identity, n, None if leftover else server.fd)

        def failed(reason: str) -> None:
            self._dials.pop(n, None)
            self._engine.dialled(self._identity, n, None)

        self._dials[n] = dial = Dial(door.loop, door.gate, self._active.grant, connected, failed)
        dial.start()

    def _drop_ended(self) -> None:
        """Take the connections that the server has closed; it may have closed its own half alone."""
        for server in [each for each in self._servers if each.is_over()]:
            self._servers.remove(server)
            up, down = server.passed()
            self._past = self._past[0] + up, self._past[1] + down
            _take(server.stream, resets=False)
            server.stream.close()


class _Server:
    """A connection to the server, of which the engine has a copy. The supervisor does not touch it any more."""

    __slots__ = ("_ours", "stream")

    def __init__(self, stream: Stream, grant: Grant) -> None:
        stream.want(0)
        stream.sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_OOBINLINE, 1)  # or UNREAD ends at an urgent byte
        self.stream = stream
        sent = 0 if grant.parent is None else len(parent_request(grant))  # some may not be acknowledged yet
        self._ours = (sent + HANDSHAKE, self._counted()[1] + HANDSHAKE)  # what we exchanged with a parent proxy

    def passed(self) -> tuple[int, int]:
        """Bytes of the engine to and from the server."""
        sent, taken = self._counted()
        return max(sent - self._ours[0], 0), max(taken - self._ours[1], 0)

    def _counted(self) -> tuple[int, int]:
        """The queues are asked last: what moves meanwhile makes a sum less, never more."""
        info = self.stream.sock.getsockopt(_socket.IPPROTO_TCP, TCP_INFO, RECEIVED.stop)
        sent = _number(info[ACKNOWLEDGED]) + _queued(self.stream, UNSENT)
        return sent, _number(info[RECEIVED]) - _queued(self.stream, UNREAD)

    def is_over(self) -> bool:
        try:
            return self.stream.sock.recv(1, 2) == b""  # MSG_PEEK
        except BlockingIOError:
            return False
        except OSError:
            return True


def _fair(wanted: int, left: int) -> int:
    """A part of what is left, so that one connection does not keep from the others what it does not need yet."""
    return min(wanted, left, max(FAIR, left // 16))


def _number(field: bytes) -> int:
    return int.from_bytes(field, sys.byteorder)


def _queued(stream: Stream, queue: int) -> int:
    return _number(fcntl.ioctl(stream.fd, queue, bytes(4)))


def _take(stream: Stream, *, resets: bool) -> None:
    """End the connection for every copy of its socket. A disconnect (connect(2), AF_UNSPEC) is a reset, and drops what
    was not sent; some kernels refuse it while a thread waits in the socket."""
    if resets and LIBC.connect(stream.fd, NOWHERE, len(NOWHERE)) == 0:
        return
    try:
        stream.sock.shutdown(_socket.SHUT_RDWR)
    except OSError:  # ENOTCONN: the peer has reset it
        pass
