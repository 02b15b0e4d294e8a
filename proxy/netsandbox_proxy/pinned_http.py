"""HTTP inside a tunnel or on a transparent connection: the destination is decided, every request may only repeat it.

The Host of each request of the connection is compared with the decided name, not only of the first (attack 25);
another one gets 421 and is recorded as a denial. The grant lasts as long as the connection.
"""

from __future__ import annotations

from netsandbox_proxy import active_grant as outcomes
from netsandbox_proxy.http_flow import HttpFlow
from netsandbox_proxy.request_rewrite import pinned_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.runtime.stream import Stream
    from netsandbox_proxy.active_grant import ActiveGrant
    from netsandbox_proxy.errors import ProtocolError
    from netsandbox_proxy.exchange import Exchange
    from netsandbox_proxy.flow import Flow
    from netsandbox_proxy.head import RequestHead


class PinnedHttp(HttpFlow):
    """Counts the bytes of all exchanges for the one record at the end."""

    __slots__ = ("_down", "_host", "_up")

    def __init__(self, flow: Flow, passage: ActiveGrant, server: Stream) -> None:
        super().__init__(flow, passage, server)
        self._host = passage.grant.host.encode("ascii")
        self._up = 0
        self._down = 0

    def _request(self, head: RequestHead) -> None:
        passage, server = self._passage, self._server
        assert passage is not None
        assert server is not None
        self._start(pinned_request(head, self._host, passage.grant.port), server)

    def _next(self, exchange: Exchange) -> None:
        self._up, self._down = self._totals()
        self._await_request()

    def _end_passage(self, outcome: str) -> None:
        if self._passage is not None:
            self._passage.end(*self._totals(), outcome)

    def _totals(self) -> tuple[int, int]:
        up, down = super()._totals()
        return self._up + up, self._down + down

    def _server_left(self) -> None:
        self._flow.close(outcomes.HTTP)

    def _turn_down(self, error: ProtocolError) -> None:
        passage = self._passage
        assert passage is not None
        self._flow.door.gate.refuse(passage.grant, error.reason)
        self._say(passage, error, outcomes.REFUSED)
