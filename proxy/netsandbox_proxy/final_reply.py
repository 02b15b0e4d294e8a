"""The last words to a client, and the patience to let it read them.

Closing a socket with unread bytes in it sends a reset, and the reset can overtake the answer (RFC 9112, 9.6). So: say
it, half-close, read and throw away until the client closes, within bounds.
"""

from __future__ import annotations

from netsandbox.runtime.loop import IN, OUT
from netsandbox.runtime.stream import MAX_BUFFER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_proxy.flow import Flow

DRAIN_BYTES = 16 * MAX_BUFFER  # a client that sends more after a refusal is not listening


class FinalReply:
    """A stage; nothing of what it reads goes anywhere."""

    __slots__ = ("_drained", "_flow", "_words")

    def __init__(self, flow: Flow, words: bytes) -> None:
        self._flow = flow
        self._words = words
        self._drained = 0

    def start(self) -> None:
        flow = self._flow
        flow.stage = self
        flow.deadline = flow.door.loop.now() + flow.door.limits.drain
        flow.client.on_ready = self._on_client
        self._say()

    def expired(self, now: float) -> None:
        self._flow.fail()

    def close(self, outcome: str) -> None:
        """Nothing is held but the client."""

    def _on_client(self, events: int) -> None:
        if events & OUT and self._words:
            self._say()
        if events & ~OUT:
            self._drain()

    def _say(self) -> None:
        client = self._flow.client
        if self._words:
            self._words = self._words[client.send(self._words) :]
        if self._words:
            return client.want(IN | OUT)
        client.shut()
        return client.want(IN)

    def _drain(self) -> None:
        data = self._flow.client.read(MAX_BUFFER)
        if data is None:
            return
        self._drained += len(data)
        if not data or self._drained > DRAIN_BYTES:
            self._flow.close("refused")
