"""A pump that passes on no more bytes than a budget has left.

The limit applies where bytes go to the sink, so what is read and not passed on is not counted. When the limit is
reached and there are more bytes, the pump stays blocked and `spent` is set: the relay then tells its owner. A source
that ends with the last byte of the budget ends normally.
"""

from __future__ import annotations

from netsandbox.runtime import pump
from netsandbox.runtime.pump import Pump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.runtime.pump import PipePool
    from netsandbox.runtime.stream import Stream


class MeteredPump(Pump):
    """`left()` is how many bytes may pass now; `charge(count)` counts those that did."""

    __slots__ = ("_charge", "_left", "spent")

    def __init__(
        self,
        source: Stream,
        sink: Stream,
        pipes: PipePool,
        left: Callable[[], int],
        charge: Callable[[int], None],
    ) -> None:
        super().__init__(source, sink, pipes)
        self._left = left
        self._charge = charge
        self.spent = False

    def push(self, data: bytes) -> None:
        left, before = self._left(), self.moved
        super().push(data[:left])
        self._charge(self.moved - before)
        if len(data) > left:
            self.spent = not self.blocked
            self.held += data[left:]
            self.blocked = True

    def _empty_pipe(self) -> None:
        assert pump._splice is not None
        assert self.pipe is not None
        self.blocked = True
        while self.in_pipe:
            left = self._left()
            if not left:
                self.spent = True
                return
            try:
                count = pump._splice(self.pipe[0], self.sink.fd, min(self.in_pipe, left), flags=pump._FLAGS)
            except BlockingIOError:
                return
            self.in_pipe -= count
            self.moved += count
            self._charge(count)
        self.blocked = False
