"""Two lanes between a client and a server, until both have ended.

Back-pressure is the loop's: a lane whose sink is full stops asking for its source. Half-close passes through in both
directions. While `judge` is set the client's bytes go to it and not to the server, though the server may speak
already.
"""

from __future__ import annotations

from netsandbox_proxy.limits import BUFFER

from netsandbox.runtime.pump import Pump
from netsandbox.runtime.stream import IN, OUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.runtime.pipes import PipePool
    from netsandbox.runtime.stream import Stream


class Relay:
    """`over()` is called once, when both directions have ended in peace; failures go to the ends' `on_failure`."""

    __slots__ = ("client", "deaf", "down", "judge", "over", "server", "up")

    def __init__(
        self, client: Stream, server: Stream, pipes: PipePool, judge: Callable[[bytes], None] | None = None
    ) -> None:
        self.client = client
        self.server = server
        self.up = Pump(client, server, pipes)
        self.down = Pump(server, client, pipes)
        self.judge = judge
        self.deaf = False  # the client has ended but its flight is not judged yet
        self.over: Callable[[], None] = _unheard
        client.on_ready = self._on_client
        server.on_ready = self._on_server

    def start(
        self, up: bytes = b"", down: bytes = b"", *, client_ended: bool = False, client_deaf: bool = False
    ) -> None:
        """Send what was held for either side, then go on by events."""
        self.deaf = client_deaf
        if up:
            self.up.push(up)
        if down:
            self.down.push(down)
        if client_ended:
            self.up.eof = True
        self._settle()

    def release(self, held: bytes, *, client_ended: bool) -> None:
        """The first flight was judged and may pass."""
        self.judge = None
        if held:
            self.up.push(held)
        if client_ended:
            self.up.eof = True
        if self.up.blocked or self.up.eof:
            self._settle()

    def close(self) -> None:
        self.over = _unheard  # no cycle is left behind
        self.judge = None
        self.up.close()
        self.down.close()

    def _on_client(self, events: int) -> None:
        up, down = self.up, self.down
        if events & OUT and down.blocked:
            down.flush()
            self._settle()
        if events & ~OUT and not up.blocked and not up.eof and self.client.fd >= 0:
            if self.judge is not None:
                return self._hear()
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

    def _hear(self) -> None:
        data = self.client.read(BUFFER)
        if data is None:
            return
        assert self.judge is not None
        self.judge(data)

    def _settle(self) -> None:
        """Ask the loop for exactly what each lane can use."""
        up, down = self.up, self.down
        up_over = up.eof and not up.blocked
        down_over = down.eof and not down.blocked
        if up_over and down_over:
            return self.over()
        if up_over and not up.ended:
            up.ended = True
            self.server.shut()
        if down_over and not down.ended:
            down.ended = True
            self.client.shut()
        deaf = up.eof or up.blocked or self.deaf
        self.client.want((0 if deaf else IN) | (OUT if down.blocked else 0))
        self.server.want((0 if down.eof or down.blocked else IN) | (OUT if up.blocked else 0))
        return None


def _unheard() -> None:
    """Replaced by whoever takes the relay over."""
