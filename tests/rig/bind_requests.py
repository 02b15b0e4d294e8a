"""What the preloaded library says at the asking door, right and wrong, and a door to say it to."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from netsandbox_portmap import bind_requests
from netsandbox_portmap.bind_requests import BindRequestDoor

from netsandbox.runtime.loop import Loop

TOKEN = bytes(range(100, 116))
PATIENCE = 20.0


def request(
    port: int = 3000,
    address: str = "127.0.0.1",
    protocol: int = 6,
    operation: int = 1,
    magic: int = bind_requests.MAGIC,
    token: bytes = TOKEN,
) -> bytes:
    return struct.pack("=IHH4sI16s", magic, operation, port, socket.inet_aton(address), protocol, token)


GOOD = request()
WRONG = {
    "magic": request(magic=bind_requests.MAGIC ^ 1),
    "token": request(token=TOKEN[:-1] + b"\0"),
    "operation": request(operation=2),
    "protocol": request(protocol=1),
    "length": GOOD + b"\0",
}


class Scene:
    """A door on loopback, driven by hand on this thread, with a clock that goes only where it is turned."""

    def __init__(self, answer: Any = None, sock: Any = None) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.failures: list[BaseException] = []
        self.skipped = 0.0
        self.loop = Loop()
        self.loop.now = lambda: self.skipped
        self.sock = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.address = self.sock.getsockname()
        self.answer = answer or (lambda address, port, protocol: (0, 20000 + port % 100))
        self.served = sock(self.sock) if sock else self.sock
        self.door = BindRequestDoor(self.loop, self.served, TOKEN, self.note, self.failures.append)
        self.clients: list[socket.socket] = []

    def note(self, *asked: Any) -> Any:
        self.asked.append(asked)
        return self.answer(*asked)

    def client(self, data: bytes = b"") -> socket.socket:
        client = socket.create_connection(self.address, PATIENCE)
        self.clients.append(client)
        if data:
            client.sendall(data)
        return client

    def turn(self) -> None:
        self.loop.call_later(0, self.loop.stop)
        self.loop.run()

    def until(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, "it did not happen"
            self.turn()

    def heard(self, client: socket.socket) -> bytes:
        """Everything the door said to this client before it hung up."""
        said = b""
        ready = select.poll()
        ready.register(client, select.POLLIN)
        while True:
            self.until(lambda: ready.poll(0))
            try:
                data = client.recv(100)
            except ConnectionResetError:  # it hung up on something it had not read
                return said
            if not data:
                return said
            said += data

    def ask(self, data: bytes = GOOD) -> bytes:
        return self.heard(self.client(data))

    def close(self) -> None:
        self.door.close()
        self.loop.close()
        for client in self.clients:
            client.close()


@contextmanager
def open_scene(**options: Any) -> Iterator[Scene]:
    scene = Scene(**options)
    try:
        yield scene
    finally:
        scene.close()
