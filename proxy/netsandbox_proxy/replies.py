"""Our own replies to a client, in the style of its protocol, and the stage that sends the last one.

People and agents read a refusal: it names the host, the reason and the remedy, and adds that retrying will not help.
Hostile bytes never get into a header or onto a second line.
"""

from __future__ import annotations

from netsandbox.runtime.http.plain_response import plain_response
from netsandbox.runtime.loop import IN, OUT
from netsandbox.runtime.stream import MAX_BUFFER
from netsandbox.text import join_host_port, printable
from netsandbox_proxy.parsers import socks5

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_proxy.contract import Refusal
    from netsandbox_proxy.flow import Flow

CONNECT_OK = b"HTTP/1.1 200 Connection established\r\n\r\n"
STATUSES = {
    "malformed": 400,
    "unsupported": 400,
    "bad-name": 400,
    "bad-port": 400,
    "host-mismatch": 421,
    "deadline": 408,
    "lookup-failed": 502,
    "unreachable": 502,
    "limit": 503,
    "audit-unwritable": 503,
    "internal": 500,
    "certificate": 502,
    "inspection": 503,
    "request-unclear": 400,
}
MAX_TEXT = 300
MAX_DRAIN = 16 * MAX_BUFFER  # a client that sends more after a refusal does not read it


def status_for(reason: str) -> int:
    """The HTTP status for a reason; every other reason is one of policy."""
    return STATUSES.get(reason, 403)


def refusal_response(status: int, reason: str, host: str, port: int, hint: str) -> bytes:
    """A complete response; the connection closes after it."""
    reason, host, hint = (printable(text, MAX_TEXT) for text in (reason, host, hint))
    text = f"{sentence(status, reason, host, port)} {hint}".rstrip()
    token = ('proxy-authenticate: Basic realm="netsandbox"',) if status == 407 else ()
    return plain_response(status, text, f"x-netsandbox-reason: {reason}", *token)


def sentence(status: int, reason: str, host: str, port: int) -> str:
    """The first sentence of a refusal."""
    where = join_host_port(host, port) if host else "the request"
    if reason == "unanswered":
        return f"{where} was refused by the sandbox's network policy ({reason}); tell the user before you try again."
    if status in (403, 421):
        return f"{where} was refused by the sandbox's network policy ({reason}); retrying will not help."
    if status == 407:
        return "this proxy belongs to another session: the session's token is missing or wrong."
    if status == 502:
        return f"{where} is allowed by policy, but it could not be reached or gave no usable answer ({reason})."
    if status in (500, 503):
        return f"{where} was refused because the sandbox could not serve it ({reason})."
    return f"{where} was refused: the proxy could not accept the request as it was sent ({reason})."


class ReplyStyle:
    """`accepted` is sent when the connection is made; `refused` makes the last reply, or b"" for a reset."""

    __slots__ = ()

    door = ""
    accepted = b""

    def refused(self, refusal: Refusal) -> bytes:
        return b""


class Connect(ReplyStyle):
    __slots__ = ()

    door = "connect"
    accepted = CONNECT_OK

    def refused(self, refusal: Refusal) -> bytes:
        status = status_for(refusal.reason)
        return refusal_response(status, refusal.reason, refusal.host, refusal.port, refusal.hint)


class Socks5(ReplyStyle):
    __slots__ = ()

    door = "socks5"
    accepted = socks5.reply(socks5.SUCCEEDED)

    def refused(self, refusal: Refusal) -> bytes:
        return socks5.reply(socks5.code_for(refusal.reason))


class Transparent(ReplyStyle):
    __slots__ = ()

    door = "transparent"


CONNECT = Connect()
SOCKS5 = Socks5()
TRANSPARENT = Transparent()


class FinalReply:
    """A stage that sends the last reply and gives the client time to read it.

    Closing a socket with unread bytes in it sends a reset, and the reset can overtake the reply (RFC 9112, 9.6). So the
    stage sends, half-closes, and then reads and drops bytes until the client closes, within bounds.
    """

    __slots__ = ("_drained", "_flow", "_reply")

    def __init__(self, flow: Flow, reply: bytes) -> None:
        self._flow = flow
        self._reply = reply
        self._drained = 0

    def start(self) -> None:
        flow = self._flow
        flow.stage = self
        flow.deadline = flow.door.loop.now() + flow.door.limits.drain
        flow.client.on_ready = self._on_client
        self._send()

    def expired(self, now: float) -> None:
        self._flow.fail()

    def close(self, outcome: str) -> None:
        """This stage holds only the client."""

    def _on_client(self, events: int) -> None:
        if events & OUT and self._reply:
            self._send()
        if events & ~OUT:
            self._drain()

    def _send(self) -> None:
        client = self._flow.client
        if self._reply:
            self._reply = self._reply[client.send(self._reply) :]
        if self._reply:
            return client.want(IN | OUT)
        client.shut()
        return client.want(IN)

    def _drain(self) -> None:
        data = self._flow.client.read(MAX_BUFFER)
        if data is None:
            return
        self._drained += len(data)
        if not data or self._drained > MAX_DRAIN:
            self._flow.close("refused")
