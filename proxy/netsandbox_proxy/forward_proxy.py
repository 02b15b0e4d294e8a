"""The HTTP stage of the mixed door: absolute-form requests and CONNECT; the gate decides on each of them.

A connection to a server is reused only for the same host and port, to an address of the new grant, when both sides keep
it alive and nothing is left in it. The new request is recorded before its first byte leaves all the same (INV-5).
"""

from __future__ import annotations

from _operator import _compare_digest as compare_digest

from netsandbox.runtime.http.errors import ProtocolError
from netsandbox.runtime.http.head import basic_token
from netsandbox_proxy.contract import Outcome
from netsandbox_proxy.dial import AUDIT_UNWRITABLE, Dial
from netsandbox_proxy.http_stage import HttpStage
from netsandbox_proxy.parsers.request_rewrite import connect_request, forward_request
from netsandbox_proxy.replies import CONNECT, FinalReply, refusal_response
from netsandbox_proxy.tunnel import HINTS, Tunnel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.runtime.http.exchange import Exchange
    from netsandbox.runtime.http.head import RequestHead
    from netsandbox.runtime.http.request import ForwardRequest
    from netsandbox.runtime.stream import Stream
    from netsandbox_proxy.contract import Grant, Refusal
    from netsandbox_proxy.flow import ActiveGrant, Flow


class ForwardProxy(HttpStage):
    """`_server_key` is the destination of the open connection to a server."""

    __slots__ = ("_dial", "_head", "_pending", "_server_key")

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow, None, None)
        self._dial: Dial | None = None
        self._head: RequestHead | None = None
        self._pending: ForwardRequest | None = None
        self._server_key: tuple[str, int, str, bool] | None = None

    def expired(self, now: float) -> None:
        if self._dial is None:
            return super().expired(now)
        self._flow.deadline = now + self._flow.door.limits.connect
        return self._dial.expired()

    def close(self, outcome: str) -> None:
        dial, self._dial = self._dial, None
        if dial is not None:
            dial.close()
        super().close(outcome)

    def _request(self, head: RequestHead) -> None:
        flow = self._flow
        token = flow.door.token
        if token is not None and not (token and compare_digest(basic_token(head) or b"", token)):
            raise ProtocolError("not-allowed", "the session's token is missing or wrong", 407)
        if head.method == b"CONNECT":
            host, port = connect_request(head)
            flow.door.connect_heads.add(head.raw, (host, port, None))
            self._drop_server()
            return Tunnel(flow, CONNECT, self._buffer, client_ended=self._ended).begin(host, port)
        request = self._pending = forward_request(head)
        self._head = head
        self._settle()
        return flow.request_grant(self, "http", request.authority_host, request.port)

    # The gate's decision and the connection

    def refused(self, refusal: Refusal) -> None:
        self._drop_server()
        FinalReply(self._flow, CONNECT.refused(refusal)).start()

    def granted(self, active: ActiveGrant) -> None:
        flow, door, grant = self._flow, self._flow.door, active.grant
        self._active = active
        assert self._pending is not None
        assert self._head is not None
        if not self._is_judged(active, self._head, self._pending):
            return None
        if self._server is not None and self._server_matches(grant):
            return self._reuse_server(active)
        self._drop_server()
        flow.deadline = active.started + door.limits.connect
        self._dial = Dial(door.loop, door.gate, grant, self._connected, self._unreachable)
        return self._dial.start()

    def _reuse_server(self, active: ActiveGrant) -> None:
        assert self._server_key is not None
        assert self._server is not None
        assert self._pending is not None
        active.address = self._server_key[2]
        if not self._flow.door.gate.dialling(active.grant, self._server_key[2]):
            return self._unreachable(AUDIT_UNWRITABLE)
        return self._start(self._pending, self._server)

    def _server_matches(self, grant: Grant) -> bool:
        if self._server_key is None:
            return False
        host, port, address, by_parent = self._server_key
        if (host, port, by_parent) != (grant.host, grant.port, grant.parent is not None):
            return False
        addresses = grant.addresses if grant.parent is None else grant.parent.addresses
        return any(literal == address for _, literal in addresses)

    def _connected(self, server: Stream, address: str, leftover: bytes) -> None:
        server.on_failure = self._flow.fail
        active, request = self._active, self._pending
        assert active is not None
        assert request is not None
        self._dial = None
        self._server = server
        active.address = address
        grant = active.grant
        self._server_key = (grant.host, grant.port, address, grant.parent is not None)
        if leftover:  # the server sent before the request
            return self._reply(
                active, ProtocolError("malformed", "origin: spoke before the request", 502), Outcome.RESET
            )
        return self._start(request, server)

    def _unreachable(self, reason: str) -> None:
        active = self._active
        assert active is not None
        self._dial = None
        outcome = Outcome.UNREACHABLE if reason == Outcome.UNREACHABLE else Outcome.UNRECORDED
        status = 502 if reason == Outcome.UNREACHABLE else 503
        self._reply(active, ProtocolError(reason, HINTS[reason], status), outcome)

    # Between requests

    def _exchange_done(self, exchange: Exchange) -> None:
        self._end_grant(Outcome.HTTP)
        self._await_request()

    def _end_grant(self, outcome: str) -> None:
        active, self._active = self._active, None
        if active is not None:
            active.end(*self._totals(), outcome)

    def _server_left(self) -> None:
        self._drop_server()

    def _refuse_request(self, error: ProtocolError) -> None:
        self._flow.door.gate.reject("http", error.reason, error.detail, self._flow.source)
        self.close(Outcome.REFUSED)
        FinalReply(self._flow, refusal_response(error.status, error.reason, "", 0, error.detail)).start()
