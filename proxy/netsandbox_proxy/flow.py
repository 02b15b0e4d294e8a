"""One client connection, from accept to close, as a row of stages.

The flow owns the client's end, the deadline and its place in the door; a stage (greeting, SOCKS handshake, HTTP,
tunnel, farewell) owns what happens now. Rules: `close` happens once and takes everything along; whatever fails, the
flow fails closed (INV-1); a stage that is closed ends its own grant; a grant that comes too late is ended at once.
"""

from __future__ import annotations

from netsandbox_proxy.active_grant import ABANDONED, RESET, ActiveGrant
from netsandbox_proxy.contract import Attempt, Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from netsandbox.runtime.loop import Loop
    from netsandbox.runtime.pump import PipePool
    from netsandbox.runtime.stream import Stream
    from netsandbox_proxy.connect_head_cache import ConnectHeadCache
    from netsandbox_proxy.contract import Gate, Grant
    from netsandbox_proxy.limits import Limits
else:
    Protocol = object

NEVER = float("inf")


class Stage(Protocol):
    """What a flow is doing."""

    def expired(self, now: float) -> None:
        """The flow's deadline has passed."""

    def close(self, outcome: str) -> None:
        """Let go of everything but the client's end; record the end of a grant that is still open."""


class Asker(Stage, Protocol):
    """A stage that puts an attempt to the gate."""

    def granted(self, passage: ActiveGrant) -> None: ...

    def refused(self, refusal: Refusal) -> None: ...


class DoorContext(Protocol):
    """What a flow sees of the door that accepted it."""

    loop: Loop
    gate: Gate
    limits: Limits
    pipes: PipePool
    known: ConnectHeadCache
    token: bytes | None  # what a client must show, where others could reach the door

    def forget(self, flow: Flow) -> None: ...


class Flow:
    """`closed` is final. `stage` is None until the door has chosen the first one."""

    __slots__ = ("_asker", "_attempt", "client", "closed", "deadline", "door", "source", "stage")

    def __init__(self, door: DoorContext, client: Stream, source: tuple[str, int], deadline: float) -> None:
        self.door = door
        self.client = client
        self.source = source
        self.deadline = deadline
        self.stage: Stage | None = None
        self._asker: Asker | None = None
        self._attempt: Attempt | None = None
        self.closed = False
        client.on_failure = self.fail

    def ask(self, asker: Asker, kind: str, host: bytes, port: int, address: str | None = None) -> None:
        """Put the attempt to the gate; it keeps its own time, for a person may be asked."""
        self._asker = asker
        self.deadline = NEVER
        attempt = self._attempt = Attempt(kind, host, port, self.source, address)
        self.door.gate.admit(attempt, self._answered)

    def _answered(self, answer: Grant | Refusal) -> None:
        asker, self._asker = self._asker, None
        if asker is None:  # the client left, or the gate answers twice
            return self._too_late(answer)
        try:
            if isinstance(answer, Refusal):
                return asker.refused(answer)
            return asker.granted(ActiveGrant(self.door.loop, self.door.gate, answer))
        except OSError:
            return self.fail()
        except Exception:
            self.fail()
            raise

    def _too_late(self, answer: Grant | Refusal) -> None:
        if not isinstance(answer, Refusal):
            ActiveGrant(self.door.loop, self.door.gate, answer).end(0, 0, ABANDONED)

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

    def fail(self, outcome: str = RESET) -> None:
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
        if self._asker is not None and self._attempt is not None:
            self._attempt.abandoned = True
        self._asker = None
        stage, self.stage = self.stage, None
        try:
            if stage is not None:
                stage.close(outcome)
        finally:
            self.door.forget(self)
