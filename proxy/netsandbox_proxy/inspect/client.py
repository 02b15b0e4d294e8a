"""The supervisor's side of the engine: passes connections to the worker and answers its questions.

Rules: every message of the worker is checked, and one that makes no sense ends it. It ends too if it does not answer
for a while. Its connections are then reset, and the next connection gets a new worker (INV-1).
"""

from __future__ import annotations

from netsandbox.frozen import frozen
from netsandbox.policy.inspection import HttpRequest
from netsandbox.runtime.loop import IN, OUT
from netsandbox_proxy.inspect import captured, channel
from netsandbox_proxy.inspect.channel import ChannelError, number, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Sequence
    from typing import Protocol

    from netsandbox.runtime.loop import Loop, Timer
    from netsandbox_proxy.inspect.process import EngineProcess

    class InspectedFlow(Protocol):
        """A connection that the worker serves (`inspect_stage`)."""

        def asked(self, n: int, request: HttpRequest) -> dict[str, object]: ...
        def answered(self, n: int, status: int, sizes: tuple[int, int], milliseconds: int) -> None: ...
        def head(self, n: int, version: str, headers: list[tuple[str, str]], side: str) -> None: ...
        def body(self, n: int, data: bytes, side: str) -> None: ...
        def dial(self, n: int) -> None: ...
        def spend(self, wanted: tuple[int, int], passed: tuple[int, int]) -> tuple[int, int] | None: ...
        def is_overdrawn(self) -> bool: ...
        def refused(self, reason: str, detail: str) -> None: ...
        def ended(self, up: int, down: int, outcome: str) -> None: ...
        def lost(self) -> None: ...

    class Secrets(Protocol):
        """The secrets of the session (`netsandbox.runtime.session_secrets`)."""

        @property
        def placeholders(self) -> dict[str, str]: ...
        def messages(self, host: str, port: int) -> list[dict[str, object]]: ...


PING = 5.0  # seconds between two checks
LOOK = 0.1  # between two looks at what passed, while there is a connection with a budget
MAX_SILENCE = 20.0  # seconds; an engine that is still importing is silent too
MAX_QUEUED = 8192
MAX_PACKETS = 64  # in one round of the loop
GONE = "the engine has ended, and with it the CA that programs trust; start a new session to inspect again"
REASONS = frozenset(
    (
        *("malformed", "host-mismatch", "sni-mismatch", "client-tls", "certificate", "internal"),
        *("secret-misplaced", "secret-answer"),
    )
)
OUTCOMES = frozenset(("http", "reset", "deadline"))


@frozen
class WorkerSettings:
    """*filter*: the worker's seccomp filter. *trust*: the bundle of CAs for servers, an open file."""

    filter: bytes
    trust: int
    idle: int
    descriptors: int = 20000
    captured: int | None = None  # bytes of each body that a HAR file gets, besides the heads; None: no such file
    secrets: Secrets | None = None


class EngineClient:
    """One per session with inspection."""

    def __init__(self, loop: Loop, process: EngineProcess, settings: WorkerSettings) -> None:
        self._loop = loop
        self._process = process
        self._settings = settings
        self._sock: _socket.socket | None = None
        self._queue: list[tuple[bytes, Sequence[int]]] = []
        self._flows: dict[int, InspectedFlow] = {}
        self._judged = channel.Outbox(self._send_packet)
        self._count = 0
        self._heard = 0.0
        self._timer: Timer | None = None
        self._look_timer: Timer | None = None

    def open(
        self,
        flow: InspectedFlow,
        host: str,
        port: int,
        hello: bytes,
        descriptors: tuple[int, int],
        *,
        metered: bool = False,
    ) -> int:
        """Pass a connection to the worker; its number there. ChannelError if there is no engine any more. *metered*:
        the worker asks before it passes bytes to or from the server."""
        if self._sock is None:
            self._start()
        self._count += 1
        message: channel.Message = {"kind": "open", "id": self._count, "host": host, "port": port}
        message |= {"hello": hello.hex(), "metered": metered}
        if self._settings.secrets is not None:
            message["secrets"] = self._settings.secrets.messages(host, port)
        packet = channel.encode(message)  # a hello with much behind it is too long, and its flow is not kept
        self._flows[self._count] = flow
        self._send_packet(packet, descriptors)
        if self._timer is None:
            self._heard = self._loop.now()
            self._timer = self._loop.call_later(PING, self._ping)
        if metered and self._look_timer is None:
            self._look_timer = self._loop.call_later(LOOK, self._look)
        return self._count

    def dialled(self, identity: int, n: int, descriptor: int | None) -> None:
        """Answer a `dial`; no descriptor: the server cannot be reached."""
        self._send({"kind": "dialled", "id": identity, "n": n}, () if descriptor is None else (descriptor,))

    def forget(self, identity: int) -> None:
        """The supervisor has closed the connection."""
        if self._flows.pop(identity, None) is not None and self._sock is not None:
            self._send({"kind": "close", "id": identity})

    def close(self) -> None:
        self._lose()
        self._process.close()

    # The worker's life

    def _start(self) -> None:
        ours, theirs = channel.pair()
        settings = {
            "kind": "spawn",
            "filter": self._settings.filter.hex(),
            "idle": self._settings.idle,
            "descriptors": self._settings.descriptors,
            "placeholders": {} if self._settings.secrets is None else self._settings.secrets.placeholders,
            "captured": self._settings.captured,
        }
        try:
            channel.send(self._process.control, channel.encode(settings), (theirs.fileno(), self._settings.trust))
        except OSError:
            ours.close()
            raise ChannelError(GONE) from None
        finally:
            theirs.close()
        ours.setblocking(False)  # noqa: FBT003 (the C method takes no keyword)
        self._sock = ours
        self._heard = self._loop.now()
        self._loop.watch(ours.fileno(), IN, self._on_ready)

    def _lose(self) -> None:
        """The worker is gone, or is given up: its parent kills it, since one that is taken over does not end by itself.
        Its flows take their sockets from it."""
        sock, self._sock = self._sock, None
        for timer in (self._timer, self._look_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._look_timer = None
        queue, self._queue = self._queue, []
        for _, descriptors in queue:
            channel.close_all(descriptors)
        self._judged = channel.Outbox(self._send_packet)
        if sock is not None:
            self._loop.unwatch(sock.fileno())
            sock.close()
            try:
                channel.send(self._process.control, channel.encode({"kind": "end"}))
            except OSError:  # EPIPE, EBADF: the engine has ended, and its worker with it
                pass
        flows, self._flows = self._flows, {}
        for flow in flows.values():
            flow.lost()

    def _ping(self) -> None:
        self._timer = None
        if self._sock is None or not self._flows:
            return None
        if self._loop.now() - self._heard > MAX_SILENCE:
            return self._lose()
        self._timer = self._loop.call_later(PING, self._ping)
        self._send({"kind": "ping"})
        return None

    def _look(self) -> None:
        self._look_timer = None
        if any(flow.is_overdrawn() for flow in self._flows.values()):
            self._lose()
        elif self._flows:
            self._look_timer = self._loop.call_later(LOOK, self._look)

    # Messages

    def _send(self, message: channel.Message, descriptors: Sequence[int] = ()) -> None:
        self._send_packet(channel.encode(message), descriptors)

    def _send_packet(self, data: bytes, descriptors: Sequence[int] = ()) -> None:
        """A descriptor in the queue is a copy: its owner may close it before the worker has it."""
        sock = self._sock
        if sock is None:
            return None
        if not self._queue:
            try:
                return channel.send(sock, data, descriptors)
            except BlockingIOError:
                self._loop.rewatch(sock.fileno(), IN | OUT)
            except OSError:
                return None  # its end is read in a moment
        if len(self._queue) >= MAX_QUEUED:
            return self._lose()
        self._queue.append((data, [_copy(each) for each in descriptors]))
        return None

    def _flush(self, sock: _socket.socket) -> None:
        while self._queue:
            data, descriptors = self._queue[0]
            try:
                channel.send(sock, data, descriptors)
            except BlockingIOError:
                return
            self._queue.pop(0)
            channel.close_all(descriptors)
        self._loop.rewatch(sock.fileno(), IN)

    def _on_ready(self, events: int) -> None:
        sock = self._sock
        assert sock is not None
        try:
            if events & OUT:
                self._flush(sock)
            for _ in range(MAX_PACKETS):
                received = channel.receive(sock)
                if received is None:
                    return self._lose()
                if received[1]:
                    channel.close_all(received[1])
                    raise ChannelError("a descriptor came from the worker")
                self._heard = self._loop.now()
                for message in received[0]:
                    self._handle(message)
                    if self._sock is not sock:
                        return None
                self._judged.flush()
        except BlockingIOError:
            pass
        except (OSError, ChannelError, KeyError):
            self._lose()
        return None

    def _handle(self, message: channel.Message) -> None:
        kind = message["kind"]
        if kind in ("ready", "pong"):
            return None
        identity = number(message, "id")
        flow = self._flows.get(identity)
        if flow is None:  # closed meanwhile
            return None
        if kind == "ask":
            return self._ask(flow, identity, message)
        if kind == "spend":
            return self._spend(flow, identity, message)
        if kind == "dial":
            return flow.dial(number(message, "n"))
        if kind == "request":
            sizes = number(message, "up"), number(message, "down")
            return flow.answered(number(message, "n"), number(message, "status"), sizes, number(message, "ms"))
        if kind == "head":
            return flow.head(number(message, "n"), *captured.read_head(message), captured.read_side(message))
        if kind == "body":
            return flow.body(number(message, "n"), captured.read_body(message), captured.read_side(message))
        if kind == "refused":
            return flow.refused(_among(REASONS, text(message, "reason")), text(message, "detail"))
        if kind == "ended":
            sizes = number(message, "up"), number(message, "down")
            outcome = _among(OUTCOMES, text(message, "outcome"))
            del self._flows[identity]
            return flow.ended(*sizes, outcome)
        raise ChannelError(f"unknown kind {kind!a}")

    def _ask(self, flow: InspectedFlow, identity: int, message: channel.Message) -> None:
        n = number(message, "n")
        unclear, secrets = message.get("unclear") is True, self._secret_names(message.get("secrets", []))
        request = HttpRequest("https", text(message, "method"), text(message, "target"), unclear, ", ".join(secrets))
        self._judged.add({"kind": "judged", "id": identity, "n": n, **flow.asked(n, request)})

    def _secret_names(self, names: object) -> list[str]:
        known = () if self._settings.secrets is None else self._settings.secrets.placeholders
        if not isinstance(names, list) or any(type(each) is not str or each not in known for each in names):
            raise ChannelError("an unknown secret")
        return names

    def _spend(self, flow: InspectedFlow, identity: int, message: channel.Message) -> None:
        wanted = number(message, "up"), number(message, "down")
        granted = flow.spend(wanted, (number(message, "sent"), number(message, "read")))
        if granted is not None:
            self._send({"kind": "allowance", "id": identity, "up": granted[0], "down": granted[1]})


def _among(known: frozenset[str], value: str) -> str:
    if value not in known:
        raise ChannelError("an unknown value")
    return value


def _copy(descriptor: int) -> int:
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 0)
