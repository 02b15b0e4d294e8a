"""The worker: a loop with the channel to the supervisor and the inspected connections. It serves until that ends.

A broken channel, or a message that makes no sense, ends the process: without the supervisor nobody decides.
"""

from __future__ import annotations

import _socket
import select
from typing import Any

from netsandbox.runtime.loop import IN, Loop
from netsandbox.runtime.stream import Stream, ignore_events
from netsandbox_proxy.inspect import channel
from netsandbox_proxy.inspect.heads import plain
from netsandbox_proxy.inspect.inspected import Inspected
from netsandbox_proxy.inspect.request_check import Refused
from netsandbox_proxy.inspect.secret_flow import host_secrets
from netsandbox_proxy.inspect.tls_contexts import TlsContexts

SWEEP = 5.0  # seconds
MAX_PACKETS = 64  # of the channel in one round, so that connections get their turn


class Worker:
    """*sock* is the channel. The supervisor reads it at any time, so writing may block. *settings* are those of
    `spawn`."""

    def __init__(self, sock: _socket.socket, contexts: TlsContexts, settings: channel.Message) -> None:
        self.loop = Loop()
        self.contexts = contexts
        self.captured: int | None = settings.get("captured")
        self._placeholders: dict[str, str] = settings.get("placeholders", {})  # of all secrets, by name
        self._idle = float(settings["idle"])
        self._channel = sock
        self._connections: dict[int, Inspected] = {}
        self._outbox = channel.Outbox(lambda packet: channel.send(sock, packet))
        self.loop.watch(sock.fileno(), IN, self._on_channel)

    def run(self) -> None:
        self.tell({"kind": "ready"})
        self.loop.call_later(SWEEP, self._sweep)
        self.loop.run()

    def tell(self, message: channel.Message) -> None:
        """Send a message at the end of this round of the loop, with all others of the round."""
        if self._outbox.add(message):
            self.loop.call_later(0, self._outbox.flush)

    def fault(self, connection: Inspected, error: Exception) -> None:
        """A connection cannot go on. The message names its kind only: its text may hold a client's bytes."""
        reason = error.reason if isinstance(error, Refused) else "malformed"
        detail = error.detail if isinstance(error, Refused) else type(error).__name__
        self.tell({"kind": "refused", "id": connection.number, "reason": reason, "detail": plain(detail)})

    def ended(self, connection: Inspected, up: int, down: int, outcome: str) -> None:
        if self._connections.pop(connection.number, None) is not None:
            self.tell({"kind": "ended", "id": connection.number, "up": up, "down": down, "outcome": outcome})

    def _on_channel(self, events: int) -> None:
        for _ in range(MAX_PACKETS):
            try:
                received = channel.receive(self._channel)
            except BlockingIOError:
                return None
            if received is None:
                return self.loop.stop()
            for message in received[0]:
                self._handle(message, received[1])
        return None

    def _handle(self, message: channel.Message, descriptors: list[int]) -> None:
        kind = message["kind"]
        if kind == "open":
            self.open(message, descriptors)
            return None
        if kind == "ping":
            return self.tell({"kind": "pong"})
        connection = self._connections.get(channel.number(message, "id"))
        if connection is None:
            return channel.close_all(descriptors)
        if kind == "judged":
            connection.judged(channel.number(message, "n"), message)
        elif kind == "allowance":
            connection.allowed(channel.number(message, "up"), channel.number(message, "down"))
        elif kind == "dialled":
            connection.dialled(channel.number(message, "n"), self._stream(descriptors[0]) if descriptors else None)
        elif kind == "close":
            connection.abort()
        return None

    def open(self, message: channel.Message, descriptors: list[int]) -> Inspected:
        """Serve a connection; its sockets are those in *descriptors*: the client's, and the server's."""
        number = channel.number(message, "id")
        client, server = map(self._stream, descriptors)
        target = message["host"], channel.number(message, "port")
        metered = message.get("metered") is True
        secrets = host_secrets(self._placeholders, message.get("secrets", []))
        made = Inspected(self, number, target, (client, server), secrets, metered=metered)
        self._connections[number] = made
        made.begin(bytes.fromhex(message["hello"]))
        return made

    def _stream(self, descriptor: int) -> Stream:
        """The descriptor does not block already: its mode is that of the supervisor's copy."""
        sock = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM, 0, descriptor)
        return Stream(self.loop, sock, ignore_events)

    def _sweep(self) -> None:
        self.loop.call_later(SWEEP, self._sweep)
        latest = self.loop.now() - self._idle
        for connection in [each for each in self._connections.values() if each.used < latest]:
            connection.end("deadline")


def prepared(sock: _socket.socket, contexts: TlsContexts, settings: channel.Message) -> Worker:
    """A worker that has opened all it needs; it may be sealed before it runs."""
    sock.setblocking(False)  # noqa: FBT003 (the C method takes no keyword)
    return Worker(_Channel(sock), contexts, settings)  # type: ignore[arg-type]


class _Channel:
    """The channel as the worker uses it: reading does not block, writing waits for room."""

    def __init__(self, sock: _socket.socket) -> None:
        self._sock = sock
        self._poll = select.poll()
        self._poll.register(sock.fileno(), select.POLLOUT)
        self.fileno = sock.fileno
        self.recvmsg = sock.recvmsg

    def sendmsg(self, *arguments: Any) -> int:
        while True:
            try:
                return self._sock.sendmsg(*arguments)
            except BlockingIOError:
                self._poll.poll()
