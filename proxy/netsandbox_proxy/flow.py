"""One client connection, from accept to close, as a sequence of stages.

Theory of operation
===================

A door accepts a connection and creates a `Flow` for it. The flow owns the client's socket, the deadline and its entry
in the door's list. One stage at a time owns everything else: it reads from the client, decides one thing, and then
replaces itself by the next stage or closes the flow. `STAGES` below lists every stage, what it reads, what it decides
and which stages can follow. A test compares the table with the stage classes, and `stage_diagram` draws the diagram of
docs/architecture.md from it.

Rule 1: every stage can close the flow at any time; `close` acts once and closes everything that the flow owns.
Rule 2: a failure closes the flow (INV-1); no failure makes a stage pass bytes on.
Rule 3: only `request_grant` leads to a destination. Only stages in whose row the gate decides may call it.
Rule 4: a stage ends its grant when it is closed; a grant that arrives after that is ended at once.
"""

from __future__ import annotations

from netsandbox.frozen import frozen
from netsandbox_proxy.contract import Attempt, Outcome, Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from netsandbox.runtime.http.head import HeadCache
    from netsandbox.runtime.loop import Loop
    from netsandbox.runtime.pump import PipePool
    from netsandbox.runtime.stream import Stream
    from netsandbox_proxy.contract import ExchangeRecorder, Gate, Grant, Limits
    from netsandbox_proxy.inspect.client import EngineClient
    from netsandbox_proxy.inspect.secret_places import Placeholders
else:
    Protocol = object


@frozen
class StageRow:
    """One row of the table of stages."""

    name: str  # the class
    module: str
    reads: str
    decides: str
    following: tuple[str, ...]  # the stages that can replace it


STAGES = (
    StageRow(
        "DetectProtocol",
        "door",
        "the first bytes of a connection to the mixed door",
        "which protocol the client speaks, by the first byte",
        ("ForwardProxy", "SocksHandshake", "PreambleHandshake", "Tunnel"),  # Tunnel: a CONNECT head seen before
    ),
    StageRow(
        "SocksHandshake",
        "handshakes",
        "a SOCKS5 handshake, with the session's token if it has one",
        "the destination as the client spelled it",
        ("Tunnel", "FinalReply"),
    ),
    StageRow(
        "PreambleHandshake",
        "handshakes",
        "the 36 bytes that the preload library sends first on a redirected connection",
        "the address that the program meant to reach",
        ("Tunnel",),
    ),
    StageRow(
        "ForwardProxy",
        "forward_proxy",
        "CONNECT and absolute-form requests, one after another",
        "the destination of each request; the gate decides on each of them",
        ("Tunnel", "RelayStage", "FinalReply"),
    ),
    StageRow(
        "Tunnel",
        "tunnel",
        "the client's first bytes to the destination, which are held",
        "the gate decides on the destination, then the first bytes must name the same host (SNI or Host)",
        ("RelayStage", "PinnedHttp", "InspectStage", "FinalReply"),
    ),
    StageRow(
        "PinnedHttp",
        "pinned_http",
        "the HTTP requests of a connection whose destination is decided",
        "whether each request names that destination",
        ("RelayStage", "FinalReply"),  # RelayStage: a WebSocket
    ),
    StageRow(
        "InspectStage",
        "inspect_stage",
        "nothing; the engine serves copies of both sockets",
        "each request that the engine asks about, by `Gate.judge`",
        (),
    ),
    StageRow("RelayStage", "tunnel", "nothing; bytes pass in both directions", "when both sides have ended", ()),
    StageRow(
        "FinalReply",
        "replies",
        "bytes of the client, which are dropped",
        "when the client has our reply",
        (),
    ),
)
FIRST_STAGES = {"MixedDoor": "DetectProtocol", "TransparentDoor": "Tunnel"}


def stage_diagram() -> str:
    """The table of stages as a Mermaid state diagram."""
    lines = ["stateDiagram-v2"]
    lines += [f"    [*] --> {stage}: {door}" for door, stage in FIRST_STAGES.items()]
    lines += [f"    {row.name} --> {name}" for row in STAGES for name in row.following or ("[*]",)]
    return "\n".join(lines) + "\n"


def stage_table() -> str:
    """The table of stages in Markdown."""
    lines = ["| stage | module | reads | decides | next |", "|---|---|---|---|---|"]
    for row in STAGES:
        following = ", ".join(f"`{name}`" for name in row.following) or "end"
        lines.append(f"| `{row.name}` | `{row.module}.py` | {row.reads} | {row.decides} | {following} |")
    return "\n".join(lines) + "\n"


NEVER = float("inf")


class Stage(Protocol):
    """The present step of a flow."""

    def expired(self, now: float) -> None:
        """The flow's deadline has passed."""

    def close(self, outcome: str) -> None:
        """Release everything but the client's socket; record the end of a grant that is still open."""


class GateClient(Stage, Protocol):
    """A stage that submits an attempt to the gate."""

    def granted(self, active: ActiveGrant) -> None: ...

    def refused(self, refusal: Refusal) -> None: ...


class DoorContext(Protocol):
    """The parts of a door that its flows use."""

    loop: Loop
    gate: Gate
    limits: Limits
    pipes: PipePool
    connect_heads: HeadCache
    pinned_heads: HeadCache  # of requests inside tunnels
    engine: EngineClient | None  # None: the session inspects no TLS
    placeholders: Placeholders | None  # of secrets, which are refused in plain HTTP
    har: ExchangeRecorder | None  # None: the session writes no HAR file
    token: bytes | None  # what a client must present, if programs outside the session could reach the door

    def forget(self, flow: Flow) -> None: ...


class ActiveGrant:
    """A grant in use; `end` records its end exactly once."""

    __slots__ = ("address", "gate", "grant", "loop", "open", "started")

    def __init__(self, loop: Loop, gate: Gate, grant: Grant) -> None:
        self.loop = loop
        self.gate = gate
        self.grant = grant
        self.address: str | None = None  # the one that accepted the connection
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

    __slots__ = ("_attempt", "_waiting", "client", "closed", "deadline", "door", "source", "stage")

    def __init__(self, door: DoorContext, client: Stream, source: tuple[str, int], deadline: float) -> None:
        self.door = door
        self.client = client
        self.source = source
        self.deadline = deadline
        self.stage: Stage | None = None
        self._waiting: GateClient | None = None
        self._attempt: Attempt | None = None
        self.closed = False
        client.on_failure = self.fail

    def request_grant(self, stage: GateClient, door: str, host: bytes, port: int, address: str | None = None) -> None:
        """Submit an attempt to the gate. The flow has no deadline meanwhile: the gate may wait for the user's
        approval."""
        self._waiting = stage
        self.deadline = NEVER
        attempt = self._attempt = Attempt(door, host, port, self.source, address)
        self.door.gate.admit(attempt, self._decided)

    def _decided(self, decision: Grant | Refusal) -> None:
        stage, self._waiting = self._waiting, None
        if stage is None:  # the client left, or the gate called twice
            return self._too_late(decision)
        try:
            if isinstance(decision, Refusal):
                return stage.refused(decision)
            return stage.granted(ActiveGrant(self.door.loop, self.door.gate, decision))
        except OSError:
            return self.fail()
        except Exception:
            self.fail()
            raise

    def _too_late(self, decision: Grant | Refusal) -> None:
        if not isinstance(decision, Refusal):
            ActiveGrant(self.door.loop, self.door.gate, decision).end(0, 0, Outcome.ABANDONED)

    def expire(self, now: float) -> None:
        """The deadline has passed; called by the door's sweep."""
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

    def exceed(self, active: ActiveGrant) -> None:
        """A budget is used up: record that, and close with a reset."""
        self.door.gate.refuse(active.grant, "budget")
        self.fail(Outcome.REFUSED)

    def fail(self, outcome: str = Outcome.RESET) -> None:
        """Close with a reset, so that the client does not take a part of the response for the whole."""
        self._close(outcome)
        self.client.abort()

    def close(self, outcome: str) -> None:
        self._close(outcome)
        self.client.close()

    def _close(self, outcome: str) -> None:
        if self.closed:
            return
        self.closed = True
        if self._waiting is not None and self._attempt is not None:
            self._attempt.abandoned = True
        self._waiting = None
        stage, self.stage = self.stage, None
        try:
            if stage is not None:
                stage.close(outcome)
        finally:
            self.door.forget(self)
