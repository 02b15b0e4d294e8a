"""An exchange that passes on no more bytes than a budget has left.

A request whose head does not fit is refused whole, so the server gets no part of it. A body or a response that does not
fit is passed on up to the last byte of the budget, and then the exchange has a fault with the reason `budget`.
"""

from __future__ import annotations

from netsandbox.runtime.http.errors import ProtocolError
from netsandbox.runtime.http.exchange import Exchange
from netsandbox.runtime.metered_pump import MeteredPump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.policy.budgets import Meter
    from netsandbox.runtime.http.request import ForwardRequest
    from netsandbox.runtime.http.response import Rewrite
    from netsandbox.runtime.pump import PipePool, Pump
    from netsandbox.runtime.stream import Stream

BUDGET = "budget"


class MeteredExchange(Exchange):
    """*meter* counts the bytes."""

    __slots__ = ("_meter",)

    def __init__(
        self,
        client: Stream,
        server: Stream,
        request: ForwardRequest,
        pipes: PipePool,
        meter: Meter,
        rewrite: Rewrite | None = None,
    ) -> None:
        super().__init__(client, server, request, pipes, rewrite)
        self._meter = meter
        self.pump = MeteredPump(server, client, pipes, meter.left_down, meter.charge_down)

    def start(self, early: bytes) -> bytes:
        if self._meter.is_spent or self._meter.left_up() < len(self.request.head_bytes):
            raise self._over()
        return super().start(early)

    def flush_up(self) -> None:
        try:
            super().flush_up()
        except ProtocolError as error:
            self.fault = error

    def flush_down(self) -> None:
        super().flush_down()
        self._check_pump()

    def _splice(self, pump: Pump, unread: int) -> None:
        super()._splice(pump, unread)
        self._check_pump()

    def _push_up(self, data: bytes) -> None:
        left, before = self._meter.left_up(), self.up
        super()._push_up(data[:left])
        self._meter.charge_up(self.up - before)
        if len(data) > left and not self.tainted:
            is_over = not self.to_server
            self.to_server += data[left:]
            if is_over:
                raise self._over()

    def _push_down(self, data: bytes) -> None:
        left, before = self._meter.left_down(), self.down
        super()._push_down(data[:left])
        self._meter.charge_down(self.down - before)
        if len(data) > left:
            is_over = not self.to_client
            self.to_client += data[left:]
            if is_over:
                self.fault = self._over()

    def _check_pump(self) -> None:
        if self.pump is not None and self.pump.spent:
            self.fault = self._over()

    def _over(self) -> ProtocolError:
        return ProtocolError(BUDGET, self._meter.scarcest.advice, 403)
