"""How each door speaks to its client: what says yes, what says no, and what merely hangs up."""

from __future__ import annotations

from netsandbox_proxy import replies, socks5

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_proxy.contract import Refusal


class ReplyStyle:
    """`accepted` is sent when the way is open; `refused` gives the last words, or b"" for a reset."""

    __slots__ = ()

    door = ""
    accepted = b""

    def refused(self, refusal: Refusal) -> bytes:
        return b""


class Connect(ReplyStyle):
    __slots__ = ()

    door = "connect"
    accepted = replies.CONNECT_OK

    def refused(self, refusal: Refusal) -> bytes:
        status = replies.status_for(refusal.reason)
        return replies.refusal_response(status, refusal.reason, refusal.host, refusal.port, refusal.hint)


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
