"""The UDP door of the resolver, for a socket on every address of a session's namespace, or on one address of the host.

Rules kept here:

1. A reply leaves from the address that the query was sent to: clients ignore replies from another address.
2. At most `BATCH` datagrams are served before the loop gets its turn back, so a flood slows the flooder only.
3. A reply that is not in the cache leaves after the records of all queries of its batch are in the log (INV-5).
4. Nothing is queued for a client: what the kernel does not take at once is lost, as DNS over UDP may be.
"""

from __future__ import annotations

from _socket import AF_INET6, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_UDP

from netsandbox.runtime.loop import IN
from netsandbox_dns.tcp_door import TcpDoor
from netsandbox_dns.udp_recorder import UdpRecorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket
    from typing import Any

    from netsandbox.runtime.loop import Loop
    from netsandbox_dns.resolver import Resolver

    Ancillary = list[tuple[int, int, bytes]]
    Replies = dict[tuple[Any, int], list[bytes]]  # by client and length

__all__ = ["TcpDoor", "UdpDoor", "UdpRecorder"]

BATCH = 64  # also the most datagrams of one UDP_SEGMENT call before Linux 6.9
MAX_DATAGRAM = 1232  # a longer query than this is cut and then malformed
_IP_PKTINFO, _IPV6_RECVPKTINFO, _IPV6_PKTINFO = 8, 49, 50  # ip(7), ipv6(7); `_socket` has no names for all of them
_UDP_SEGMENT = 103  # linux/udp.h
_ROOM = 64  # for control messages; IPV6_PKTINFO takes 40
_TURNS = range(BATCH)
_LOOPBACK = b"\x7f\0\0\1"


class UdpDoor:
    """Answers queries on *sock*, which it owns from now on. *bound*: to one address, from which it answers."""

    def __init__(self, loop: Loop, sock: Socket, resolver: Resolver, *, bound: bool = False) -> None:
        sock.settimeout(0)
        if not bound:
            level, option = (IPPROTO_IPV6, _IPV6_RECVPKTINFO) if sock.family == AF_INET6 else (IPPROTO_IP, _IP_PKTINFO)
            sock.setsockopt(level, option, 1)
        self._loop = loop
        self._sock = sock
        self._resolver = resolver
        # The control message of a query to 127.0.0.1: the interface lo, the local address, the destination.
        self._from_loopback = [(IPPROTO_IP, _IP_PKTINFO, b"\1\0\0\0" + _LOOPBACK + _LOOPBACK)]
        self._fd = sock.fileno()
        loop.watch(self._fd, IN, self._ready)

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.unwatch(self._fd)
            self._fd = -1
            self._sock.close()

    def _ready(self, _events: int) -> None:
        receive, cached_reply, add = self._sock.recvmsg, self._resolver.replies.get, self._add
        replies: Replies = {}
        for turn in _TURNS:
            try:
                data, ancillary, _flags, source = receive(MAX_DATAGRAM, _ROOM)
            except BlockingIOError:
                break
            except OSError:  # the ICMP error of an earlier reply
                continue
            if (cached := cached_reply(data[2:])) is None:
                self._send_all(replies)
                self._answer_new(data, source, ancillary, BATCH - turn)
                return
            cached[1].count += 1
            add(replies, data[:2] + cached[0], source, ancillary)
        self._send_all(replies)

    def _answer_new(self, data: bytes, source: Any, ancillary: Ancillary, turns: int) -> None:
        """Answer this query and those that wait. Their records are written in one step, then the replies are sent."""
        resolver, receive, replies = self._resolver, self._sock.recvmsg, []
        resolver.hold()
        try:
            for turn in range(turns):
                if turn:
                    try:
                        data, ancillary, _flags, source = receive(MAX_DATAGRAM, _ROOM)
                    except BlockingIOError:
                        break
                    except OSError:
                        continue
                reply = resolver.answer(data, "udp", source, ancillary, self._send)
                if reply is not None:
                    replies.append((data, reply, source, ancillary))
        finally:
            is_written = resolver.release()
        sent: Replies = {}
        for data, reply, source, ancillary in replies:
            final = reply if is_written else resolver.failure(data)
            if final is not None:
                self._add(sent, final, source, ancillary)
        self._send_all(sent)

    def _add(self, replies: Replies, reply: bytes, source: Any, ancillary: Ancillary) -> None:
        """Collect a reply between 127.0.0.1 and itself, where the kernel can pick no other source; send any other."""
        if ancillary != self._from_loopback or source[0] != "127.0.0.1":
            self._send(reply, source, ancillary)
            return
        key = source, len(reply)
        if key in replies:
            replies[key].append(reply)
        else:
            replies[key] = [reply]

    def _send_all(self, replies: Replies) -> None:
        """Send equally long replies for one client in one call, which the kernel cuts: udp(7), UDP_SEGMENT."""
        for (source, length), equal in replies.items():
            try:
                if len(equal) == 1:
                    self._sock.sendto(equal[0], source)
                else:
                    cut = (IPPROTO_UDP, _UDP_SEGMENT, length.to_bytes(2, "little"))
                    self._sock.sendmsg(equal, [cut], 0, source)
            except OSError:  # a client that is gone: the next one is its own
                continue

    def _send(self, reply: bytes, source: Any, ancillary: Ancillary) -> None:
        if self._fd < 0:  # a forwarded answer that came after the end
            return
        try:
            self._sock.sendmsg((reply,), _from_where_it_came(ancillary), 0, source)
        except OSError:
            return


def _from_where_it_came(ancillary: Ancillary) -> Ancillary:
    """The control message that makes the kernel use the query's destination as the reply's source."""
    for level, kind, data in ancillary:
        if level == IPPROTO_IP and kind == _IP_PKTINFO:
            return [(level, kind, b"\0\0\0\0" + data[8:12] + b"\0\0\0\0")]
        if level == IPPROTO_IPV6 and kind == _IPV6_PKTINFO:
            return [(level, kind, data)]
    return []
