"""HTTP in a tunnel or on a transparent connection: the destination is decided, and requests may only repeat it.

The Host of each request of the connection is compared with the decided name, not only of the first (attack 25); another
one gets 421 and is recorded as a denial. The grant lasts as long as the connection, and the bytes of all exchanges are
counted for its one record at the end.
"""

from __future__ import annotations

from netsandbox_proxy.contract import Outcome
from netsandbox_proxy.http_stage import HttpStage
from netsandbox_proxy.parsers.request_rewrite import pinned_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.runtime.http.errors import ProtocolError
    from netsandbox.runtime.http.exchange import Exchange
    from netsandbox.runtime.http.head import RequestHead
    from netsandbox.runtime.stream import Stream
    from netsandbox_proxy.flow import ActiveGrant, Flow


class PinnedHttp(HttpStage):
    __slots__ = ("_down", "_host", "_up")

    def __init__(self, flow: Flow, active: ActiveGrant, server: Stream) -> None:
        super().__init__(flow, active, server)
        self._host = active.grant.host.encode("ascii")
        self._up = 0
        self._down = 0

    def _is_repeated(self) -> bool:
        active, server = self._active, self._server
        known = self._flow.door.pinned_heads.get(self._buffer)
        if known is None or active is None or server is None:
            return False
        host, port, request = known
        if request is None or host != self._host or port != active.grant.port or active.grant.inspection is not None:
            return False  # that head was for another destination
        self._buffer = b""
        self._busy = True
        self._start(request, server)
        return True

    def _request(self, head: RequestHead) -> None:
        active, server = self._active, self._server
        assert active is not None
        assert server is not None
        host, port = self._host, active.grant.port
        request = pinned_request(head, host, port)
        self._flow.door.pinned_heads.add(head.raw, (host, port, request))
        if self._is_judged(active, head, request):
            self._start(request, server)

    def _exchange_done(self, exchange: Exchange) -> None:
        self._up, self._down = self._totals()
        self._await_request()

    def _end_grant(self, outcome: str) -> None:
        if self._active is not None:
            self._active.end(*self._totals(), outcome)

    def _totals(self) -> tuple[int, int]:
        up, down = super()._totals()
        return self._up + up, self._down + down

    def _server_left(self) -> None:
        self._flow.close(Outcome.HTTP)

    def _refuse_request(self, error: ProtocolError) -> None:
        active = self._active
        assert active is not None
        self._flow.door.gate.refuse(active.grant, error.reason, error.detail)
        self._reply(active, error, Outcome.REFUSED)
