"""A place to publish at, and a look at what is published there."""

from __future__ import annotations

import errno
import socket
from typing import Any

from netsandbox_portmap.published import Wanted
from netsandbox_portmap.publisher import Publisher

ALL = Wanted(automatic=True)
COUNT = 6


class FakeWindow:
    def __init__(self, base: int, device: str | None = None) -> None:
        self.base = base
        self.device = device or f"127.{base >> 8}.{base & 255}.1"


def found(rig: Any, publisher: Publisher, address: str, port: int, requested: int | None = None) -> Any:
    requested = port if requested is None else requested
    rig.run(lambda: publisher.listening(address, port, requested=requested, pid=42, exe="/usr/bin/node"))
    return next((one for one in rig.run(publisher.published) if one.port == requested), None)


def talks(rig: Any, address: str, port: int) -> bool:
    client = rig.client(port, address)
    client.sendall(b"hello")
    return bool(client.recv(5) == b"hello")


def refused(address: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as sock:
        return sock.connect_ex((address, port)) == errno.ECONNREFUSED


def forbid(bind: Any, forbidden: Any) -> Any:
    def attempt(address: str, port: int) -> Any:
        if forbidden(address, port):
            raise PermissionError(errno.EACCES, "Permission denied")
        return bind(address, port)

    return attempt
