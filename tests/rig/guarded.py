"""A guard on bind and listen, at work on this process's own sockets."""

from __future__ import annotations

import socket
import struct
from socket import socket as Socket
from typing import Any

from netsandbox_portmap.bind_rule import BindRule

from netsandbox.backends.namespaces.bind_guard import BindGuard
from netsandbox.backends.namespaces.syscall_broker import Broker

V4, V6 = socket.AF_INET, socket.AF_INET6
ANY = "0.0.0.0"
DEVICE = "127.91.7.1"
COUNT = 5


def v4(address: str, port: int) -> bytes:
    return struct.pack("=H", V4) + port.to_bytes(2, "big") + socket.inet_pton(V4, address) + bytes(8)


def v6(address: str, port: int) -> bytes:
    return struct.pack("=H", V6) + port.to_bytes(2, "big") + bytes(4) + socket.inet_pton(V6, address) + bytes(4)


class Scene:
    def __init__(self, trapped: Any, rule: BindRule) -> None:
        self.trapped, self.listener, self.log = trapped, trapped.listener, trapped.log
        self.heard: list[tuple[str, int, int, str]] = []
        self.told: list[tuple[str, int]] = []
        self.guard = BindGuard(
            self.listener,
            trapped.repeats,
            rule,
            lambda *what: self.heard.append(what),
            lambda *what: self.told.append(what),
        )
        self.broker = Broker(self.listener, trapped.repeats, self.guard)
        self.open: list[socket.socket] = []

    def socket(self, family: int = V4, kind: int = socket.SOCK_STREAM) -> socket.socket:
        self.open.append(socket.socket(family, kind))
        return self.open[-1]

    def bind(self, sock: Socket, address: bytes) -> int:
        return self._serve(self.trapped.call("bind", sock, address))

    def listen(self, sock: Socket | int, backlog: int = 7) -> int:
        return self._serve(self.trapped.call("listen", sock, length=backlog))

    def _serve(self, call: Any) -> int:
        before = len(self.listener.answers)
        self.broker.serve(call)
        (answer,) = self.listener.answers[before:]  # each call is answered exactly once
        assert self.listener.passed == []  # and never with CONTINUE
        return int(answer)

    def records(self, event: str) -> list[dict[str, Any]]:
        return [record for record in self.log.records if record["event"] == event]

    def close(self) -> None:
        for sock in self.open:
            sock.close()


def port_of(sock: socket.socket) -> int:
    return int(sock.getsockname()[1])
