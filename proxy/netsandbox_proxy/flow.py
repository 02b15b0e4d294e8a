"""One client connection, from accept to close, as a row of stages.

The flow owns the client's end, the deadline and its place in the door; a stage (greeting, SOCKS handshake, HTTP,
tunnel, farewell) owns what happens now. Rules: `close` happens once and takes everything along; whatever fails, the
flow fails closed (INV-1); a stage that is closed ends its own grant; a grant that comes too late is ended at once.
"""

from __future__ import annotations

from netsandbox_proxy.contract import Attempt, Outcome, Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from netsandbox.runtime.loop import Loop
    from netsandbox.runtime.pump import PipePool
    from netsandbox.runtime.stream import Stream
    from netsandbox_proxy.contract import Gate, Grant, Limits
else:
    Protocol = object

NEVER = float("inf")
MAX_CACHED_HEADS = 512
MAX_CACHED_HEAD = 1024  # bytes


class Stage(Protocol):
    """What a flow is doing."""

    def expired(self, now: float) -> None:
        """The flow's deadline has passed."""

    def close(self, outcome: str) -> None:
        """Let go of everything but the client's end; record the end of a grant that is still open."""


class GateClient(Stage, Protocol):
    """A stage that puts an attempt to the gate."""

    def granted(self, active: ActiveGrant) -> None: ...

    def refused(self, refusal: Refusal) -> None: ...


class ConnectHeadCache:
    """CONNECT heads that have been read before, byte for byte. Bounded; the oldest entry goes first.

    Reading a head is a pure function of its bytes, and clients repeat theirs exactly, so the same bytes give the same
    destination without reading them again. Only a head that passed every check, the session's token included, is
    remembered, and only its destination: the gate decides each time all the same (INV-3).
    """

    __slots__ = ("_destinations", "get")

    def __init__(self) -> None:
        self._destinations: dict[bytes, tuple[bytes, int]] = {}
        self.get = self._destinations.get

    def add(self, head: bytes, host: bytes, port: int) -> None:
        if len(head) > MAX_CACHED_HEAD:
            return
        if len(self._destinations) >= MAX_CACHED_HEADS:
            del self._destinations[next(iter(self._destinations))]
        self._destinations[head] = (host, port)


class DoorContext(Protocol):
    """What a flow sees of the door that accepted it."""

    loop: Loop
    gate: Gate
    limits: Limits
    pipes: PipePool
    connect_heads: ConnectHeadCache
    token: bytes | None  # what a client must show, where others could reach the door

    def forget(self, flow: Flow) -> None: ...


class ActiveGrant:
    """A grant in use; `end` records its end exactly once."""

    __slots__ = ("address", "gate", "grant", "loop", "open", "started")

    def __init__(self, loop: Loop, gate: Gate, grant: Grant) -> None:
        self.loop = loop
        self.gate = gate
        self.grant = grant
        self.address: str | None = None  # the one that answered
        self.started = loop.now()
        self.open = True

    def end(self, up: int, down: int, outcome: str) -> None:
        if not self.open:
            return
        self.open = False
        milliseconds = int((self.loop.now() - self.started) * 1000)
        self.gate.ended(self.grant, self.address, up, down, milliseconds, outcome)


class Flow:
    """`closed` is final. `stage` is None until the door has chosen the first one."""

    __slots__ = ("_attempt", "_client_stage", "client", "closed", "deadline", "door", "source", "stage")

    def __init__(self, door: DoorContext, client: Stream, source: tuple[str, int], deadline: float) -> None:
        self.door = door
        self.client = client
        self.source = source
        self.deadline = deadline
        self.stage: Stage | None = None
        self._client_stage: GateClient | None = None
        self._attempt: Attempt | None = None
        self.closed = False
        client.on_failure = self.fail

    def ask(self, client_stage: GateClient, kind: str, host: bytes, port: int, address: str | None = None) -> None:
        """Put the attempt to the gate; it keeps its own time, for a person may be asked."""
        self._client_stage = client_stage
        self.deadline = NEVER
        attempt = self._attempt = Attempt(kind, host, port, self.source, address)
        self.door.gate.admit(attempt, self._answered)

    def _answered(self, answer: Grant | Refusal) -> None:
        client_stage, self._client_stage = self._client_stage, None
        if client_stage is None:  # the client left, or the gate answers twice
            return self._too_late(answer)
        try:
            if isinstance(answer, Refusal):
                return client_stage.refused(answer)
            return client_stage.granted(ActiveGrant(self.door.loop, self.door.gate, answer))
        except OSError:
            return self.fail()
        except Exception:
            self.fail()
            raise

    def _too_late(self, answer: Grant | Refusal) -> None:
        if not isinstance(answer, Refusal):
            ActiveGrant(self.door.loop, self.door.gate, answer).end(0, 0, Outcome.ABANDONED)

    def expire(self, now: float) -> None:
        """Called by the sweep; a stage without an opinion is a flow without a future."""
        self.deadline = NEVER
        try:
            if self.stage is not None:
                return self.stage.expired(now)
        except OSError:
            pass
        except Exception:
            self.fail()
            raise
        return self.fail()

    def fail(self, outcome: str = Outcome.RESET) -> None:
        """Hang up at once, so that nobody takes a part for the whole."""
        self._close(outcome)
        self.client.abort()

    def close(self, outcome: str) -> None:
        self._close(outcome)
        self.client.close()

    def _close(self, outcome: str) -> None:
        if self.closed:
            return
        self.closed = True
        if self._client_stage is not None and self._attempt is not None:
            self._attempt.abandoned = True
        self._client_stage = None
        stage, self.stage = self.stage, None
        try:
            if stage is not None:
                stage.close(outcome)
        finally:
            self.door.forget(self)
