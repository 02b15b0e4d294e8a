"""The messages between supervisor and engine: JSON, one per packet, with descriptors beside them.

| to the engine | | from the engine | |
|---|---|---|---|
| `spawn` + [channel] | fork a worker, with these settings | `authority` | the certificate of the session's CA |
| `open` + [client, upstream] | serve this connection | `ready` | the worker is sealed and serves |
| `judged` | the decision on a request | `ask` | may this request go on? |
| `allowance` | so many more bytes may pass | `spend` | may so many bytes pass? So many did. Only with a budget |
| `dialled` + [upstream] | another connection to the host, or none | `dial` | the upstream is closed and needed again |
| `close` | the supervisor has closed the connection | `request` | the end of a request: status, bytes, time |
| `ping` | answer, if you are alive | `pong` | |
| | | `head`, `body` | for a HAR file: a head, a part of a body (`captured`) |
| | | `refused` | the engine itself refused something |
| | | `ended` | the end of a connection: bytes |

`spawn` has the placeholders of all secrets, `open` the values of those of its host, and `ask` the names of those that
the request would get.

A packet holds whole messages or the peer is broken, so a reader never waits for the rest of one. What one round of a
loop has to say goes in one packet, as a list: a packet wakes the other process, which costs more than its messages.
Descriptors come with a packet of one message.
"""

from __future__ import annotations

import _socket
import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Message = dict[str, Any]

MAX_PACKET = 192 * 1024  # below the default send buffer of a Unix socket
MAX_FIELD = 16 * 1024
MAX_DESCRIPTORS = 4
DESCRIPTOR_SIZE = 4


class ChannelError(Exception):
    """The peer broke the protocol, or is gone."""


def pair() -> tuple[_socket.socket, _socket.socket]:
    """Two ends; neither survives an exec unless it is passed on."""
    return _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)


def encode(message: Message) -> bytes:
    data = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(data) > MAX_PACKET:
        raise ChannelError(f"a message of {len(data)} bytes")
    return data


def send(sock: _socket.socket, data: bytes, descriptors: Sequence[int] = ()) -> None:
    """Send one packet; BlockingIOError if the peer does not read."""
    extra = []
    if descriptors:
        packed = b"".join(each.to_bytes(DESCRIPTOR_SIZE, "little") for each in descriptors)
        extra = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)]
    sock.sendmsg([data], extra, _socket.MSG_NOSIGNAL)


def receive(sock: _socket.socket) -> tuple[list[Message], list[int]] | None:
    """The messages of one packet and its descriptors, which the caller owns; None at the end. BlockingIOError if there
    is none."""
    room = _socket.CMSG_SPACE(MAX_DESCRIPTORS * DESCRIPTOR_SIZE)
    data, extra, flags, _ = sock.recvmsg(MAX_PACKET + 1, room, _socket.MSG_CMSG_CLOEXEC)
    descriptors = [
        int.from_bytes(packed[at : at + DESCRIPTOR_SIZE], "little")
        for level, kind, packed in extra
        if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS)
        for at in range(0, len(packed) - len(packed) % DESCRIPTOR_SIZE, DESCRIPTOR_SIZE)
    ]
    if not data and not descriptors:
        return None
    try:
        if flags & (_socket.MSG_TRUNC | _socket.MSG_CTRUNC):
            raise ChannelError("a message was cut")
        found = json.loads(data)
        messages = found if isinstance(found, list) else [found]
        if len(messages) != 1 and (descriptors or not messages):
            raise ChannelError("descriptors are not those of one message")
        for message in messages:
            if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
                raise ChannelError("not a message")
    except (ValueError, RecursionError, ChannelError) as error:
        close_all(descriptors)
        raise ChannelError(str(error)) from None
    return messages, descriptors


class Outbox:
    """Messages that wait for the end of a round, to go in one packet, or in several if there are too many."""

    def __init__(self, send_packet: Callable[[bytes], None]) -> None:
        self._send_packet = send_packet
        self._waiting: list[bytes] = []
        self._size = 0

    def add(self, message: Message) -> bool:
        """Whether it is the first one that waits."""
        data = encode(message)
        if self._size + len(data) > MAX_PACKET - len("[]"):
            self.flush()
        self._waiting.append(data)
        self._size += len(data) + len(",")
        return len(self._waiting) == 1

    def flush(self) -> None:
        waiting, self._waiting, self._size = self._waiting, [], 0
        if waiting:
            self._send_packet(waiting[0] if len(waiting) == 1 else b"[" + b",".join(waiting) + b"]")


def close_all(descriptors: Sequence[int]) -> None:
    for each in descriptors:
        try:
            _socket.close(each)
        except OSError:
            pass


def number(message: Message, name: str) -> int:
    """A field that must be a number from 0 on."""
    value = message.get(name)
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise ChannelError(f"{name} is no number")
    return value


def text(message: Message, name: str, most: int = MAX_FIELD) -> str:
    """A field that must be printable ASCII of bounded length, usually that of a request's target."""
    value = message.get(name)
    if type(value) is not str or len(value) > most or not value.isascii() or not value.isprintable():
        raise ChannelError(f"{name} is no text")
    return value
