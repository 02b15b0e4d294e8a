"""One inspected request in the clear, from the gate's decision to the end of its response.

The HTTP stages pass it on without the engine. This notes what the records and the HAR file need of it; bodies are not
kept, since long ones never come through this process.
"""

from __future__ import annotations

from netsandbox.policy.inspection import HttpRequest, RequestEnd
from netsandbox.runtime.http.head import parse_header
from netsandbox_proxy.inspect.captured import shown_headers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.runtime.http.exchange import Exchange
    from netsandbox.runtime.http.head import RequestHead
    from netsandbox_proxy.contract import Grant, Refusal
    from netsandbox_proxy.flow import DoorContext


class PlainRequest:
    """`rewrite` sees each head of the response; `ended` is called once, when the exchange is over."""

    __slots__ = ("_began", "_door", "_grant", "_head_size", "_number", "_request")

    def __init__(self, door: DoorContext, grant: Grant, number: int, head: RequestHead, request: HttpRequest) -> None:
        self._door = door
        self._grant = grant
        self._number = number
        self._request = request
        self._began = door.loop.now()
        self._head_size = 0
        self._tell(head.version, head.headers, "up")

    def judged(self, refusal: Refusal | None) -> None:
        if self._door.har is not None:
            self._door.har.asked(self._grant, self._number, self._request, refusal)

    def rewrite(self, lines: list[bytes], raw: bytes) -> bytes:
        """The head of a response, which is passed on as it is; of several the last one counts."""
        self._head_size += len(raw)
        if self._door.har is not None:
            version = lines[0].partition(b" ")[0]
            self._tell(version, [parse_header(line)[::2] for line in lines[1:]], "down")
        return raw

    def ended(self, exchange: Exchange | None) -> None:
        """Record the end, if there was a response."""
        har = self._door.har
        if exchange is None or (exchange.response.status < 200 and not exchange.upgraded):
            return None if har is None else har.lost(self._grant)
        status = exchange.response.status
        up = max(0, exchange.up - len(exchange.request.head_bytes))
        sizes = up, max(0, exchange.down - self._head_size)
        milliseconds = int((self._door.loop.now() - self._began) * 1000)
        self._door.gate.answered(self._grant, RequestEnd(self._number, self._request, status, *sizes, milliseconds))
        return None if har is None else har.ended(self._grant, self._number, status, sizes)

    def _tell(self, version: bytes, headers: list[tuple[bytes, bytes]], side: str) -> None:
        if self._door.har is not None:
            shown = shown_headers(headers)
            self._door.har.head(self._grant.inspection or 0, self._number, version.decode("ascii"), shown, side)
