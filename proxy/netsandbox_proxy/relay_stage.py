"""A stage in which nothing is looked at any more: bytes pass until both sides have ended or both are silent."""

from __future__ import annotations

from netsandbox_proxy.active_grant import DEADLINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.runtime.relay import Relay
    from netsandbox.runtime.stream import Stream
    from netsandbox_proxy.active_grant import ActiveGrant
    from netsandbox_proxy.flow import Flow

CHECKS = 4  # looks per idle time; the sweep compares byte counts, so a byte costs no clock


class Idle:
    """Tells a silent connection from a slow one by its byte count."""

    __slots__ = ("_moved", "_since")

    def __init__(self, now: float, moved: int = 0) -> None:
        self._moved = moved
        self._since = now

    def over(self, now: float, moved: int, patience: float) -> bool:
        if moved != self._moved:
            self._moved = moved
            self._since = now
        return now - self._since >= patience


class RelayStage:
    """Takes over a relay that is running. `word` is what its audit record will say."""

    __slots__ = ("_flow", "_idle", "_passage", "_relay", "_server", "_word")

    def __init__(self, flow: Flow, passage: ActiveGrant, server: Stream, relay: Relay, word: str) -> None:
        self._flow = flow
        self._passage = passage
        self._server = server
        self._relay = relay
        self._word = word
        self._idle: Idle | None = None
        relay.on_end = self._over
        flow.stage = self
        flow.deadline = flow.door.loop.now() + flow.door.limits.handshake

    def expired(self, now: float) -> None:
        flow, limits = self._flow, self._flow.door.limits
        moved = self._relay.up.moved + self._relay.down.moved
        if self._idle is None:
            self._idle = Idle(now, moved)
        if not moved or self._idle.over(now, moved, limits.idle):
            return flow.fail(DEADLINE)
        flow.deadline = now + limits.idle / CHECKS
        return None

    def close(self, outcome: str) -> None:
        self._relay.close()
        if outcome == self._word:
            self._server.close()
        else:
            self._server.abort()
        self._passage.end(self._relay.up.moved, self._relay.down.moved, outcome)

    def _over(self) -> None:
        self._flow.close(self._word)
