"""Two pumps between a client and a server, until both directions have ended.

Back-pressure is the loop's: a pump whose sink is full stops waiting for its source. Half-close passes through in both
directions. While `inspect` is set, the client's bytes go to it and not to the server, though the server may already
send. With a meter, both pumps pass on what its budgets have left, and `on_spent` is called when that is nothing.
"""

from __future__ import annotations

from netsandbox.runtime.loop import IN, OUT
from netsandbox.runtime.pump import PipePool, Pump
from netsandbox.runtime.stream import Stream, ignore_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable

    from netsandbox.policy.budgets import Meter
    from netsandbox.runtime.loop import Loop

    Done = Callable[[int, int], None]  # bytes up, bytes down


class Relay:
    """`on_end()` is called once, when both directions have ended normally; failures go to the streams' `on_failure`."""

    __slots__ = ("client", "client_muted", "down", "inspect", "on_end", "on_spent", "server", "up")

    def __init__(
        self,
        client: Stream,
        server: Stream,
        pipes: PipePool,
        inspect: Callable[[bytes], None] | None = None,
        meter: Meter | None = None,
    ) -> None:
        self.client = client
        self.server = server
        self.up = Pump(client, server, pipes)
        self.down = Pump(server, client, pipes)
        if meter is not None:
            from netsandbox.runtime.metered_pump import MeteredPump

            self.up = MeteredPump(client, server, pipes, meter.left_up, meter.charge_up)
            self.down = MeteredPump(server, client, pipes, meter.left_down, meter.charge_down)
        self.inspect = inspect
        self.client_muted = False  # the client has ended, but its first bytes have no verdict yet
        self.on_end: Callable[[], None] = _no_owner
        self.on_spent: Callable[[], None] = _no_owner
        client.on_ready = self._on_client
        server.on_ready = self._on_server

    @property
    def moved(self) -> int:
        """Bytes that have passed, in both directions."""
        return self.up.moved + self.down.moved

    def start(
        self, up: bytes = b"", down: bytes = b"", *, client_ended: bool = False, client_muted: bool = False
    ) -> None:
        """Send what was held for either side, then go on by events."""
        self.client_muted = client_muted
        if up:
            self.up.push(up)
        if down:
            self.down.push(down)
        if client_ended:
            self.up.eof = True
        self._settle()

    def release(self, held: bytes, *, client_ended: bool) -> None:
        """The client's first bytes have been inspected and may pass."""
        self.inspect = None
        if held:
            self.up.push(held)
        if client_ended:
            self.up.eof = True
        if self.up.blocked or self.up.eof:
            self._settle()

    def close(self) -> None:
        self.on_end = self.on_spent = _no_owner  # no reference cycle is left behind
        self.inspect = None
        self.up.close()
        self.down.close()

    def _on_client(self, events: int) -> None:
        up, down = self.up, self.down
        if events & OUT and down.blocked:
            down.flush()
            self._settle()
        if events & ~OUT and not up.blocked and not up.eof and self.client.fd >= 0:
            if self.inspect is not None:
                data = self.client.read(up.pipes.buffer)
                return None if data is None else self.inspect(data)
            up.pump()
            if up.blocked or up.eof:
                self._settle()
        return None

    def _on_server(self, events: int) -> None:
        up, down = self.up, self.down
        if events & OUT and up.blocked:
            up.flush()
            self._settle()
        if events & ~OUT and not down.blocked and not down.eof and self.server.fd >= 0:
            down.pump()
            if down.blocked or down.eof:
                self._settle()

    def _settle(self) -> None:
        """Wait for exactly those events that a pump can use."""
        up, down = self.up, self.down
        if up.spent or down.spent:
            return self.on_spent()
        up_over = up.eof and not up.blocked
        down_over = down.eof and not down.blocked
        if up_over and down_over:
            return self.on_end()
        if up_over and not up.ended:
            up.ended = True
            self.server.shut()
        if down_over and not down.ended:
            down.ended = True
            self.client.shut()
        muted = up.eof or up.blocked or self.client_muted
        self.client.want((0 if muted else IN) | (OUT if down.blocked else 0))
        self.server.want((0 if down.eof or down.blocked else IN) | (OUT if up.blocked else 0))
        return None


def _no_owner() -> None:
    """Replaced by the owner of a relay."""


class RelayPool:
    """Relays that nobody inspects or times: published ports, whose hot-reload sockets are silent for hours."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.pipes = PipePool()
        self._open: set[PooledRelay] = set()
        self.up = 0  # bytes of all relays that have ended
        self.down = 0

    def join(
        self, client: _socket.socket, server: _socket.socket, held: bytes, done: Done, down: bytes = b""
    ) -> PooledRelay:
        """Relay between two connected sockets and own them; *held* goes to the server first, *down* to the client.

        `done(bytes up, bytes down)` is called once at the end, also after `close` of the result.
        """
        streams = (Stream(self._loop, client, ignore_events), Stream(self._loop, server, ignore_events))
        relay = PooledRelay(self, Relay(*streams, self.pipes), done)
        self._open.add(relay)
        self.pipes.share(len(self._open))
        relay.start(held, down)
        return relay

    @property
    def connections(self) -> int:
        return len(self._open)

    @property
    def moved(self) -> int:
        """Bytes in both directions, of all connections."""
        return self.up + self.down + sum(relay.moved for relay in self._open)

    def ended(self, relay: PooledRelay, up: int, down: int) -> None:
        self._open.discard(relay)
        self.pipes.share(len(self._open))
        self.up += up
        self.down += down

    def close(self) -> None:
        """End all relays with a reset."""
        for relay in tuple(self._open):
            relay.close()
        self.pipes.close()


class PooledRelay:
    """One relay of a pool, from the first byte to the last."""

    __slots__ = ("_done", "_pool", "_relay")

    def __init__(self, pool: RelayPool, relay: Relay, done: Done) -> None:
        self._pool = pool
        self._relay = relay
        self._done: Done | None = done
        relay.on_end = self._ended
        relay.client.on_failure = relay.server.on_failure = self.close

    @property
    def moved(self) -> int:
        return self._relay.moved

    def start(self, held: bytes, down: bytes) -> None:
        try:
            self._relay.start(held, down)
        except OSError:  # the server left at once
            self.close()
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """End it with a reset, so that neither side takes a part for the whole."""
        self._finish(Stream.abort)

    def _ended(self) -> None:
        self._finish(Stream.close)

    def _finish(self, close: Callable[[Stream], None]) -> None:
        done, self._done = self._done, None
        if done is None:
            return
        relay = self._relay
        relay.close()
        close(relay.client)
        close(relay.server)
        self._pool.ended(self, relay.up.moved, relay.down.moved)
        done(relay.up.moved, relay.down.moved)
