"""A door on loopback in a thread of its own, and servers that count who comes."""

from __future__ import annotations

import fcntl
import socket
import struct
import termios
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from netsandbox_proxy.contract import Limits
from netsandbox_proxy.door import MixedDoor, TransparentDoor

from tests.rig.counting_listener import CountingListener
from tests.rig.loop_thread import LoopThread
from tests.rig.processes import own_descriptors
from tests.rig.scripted_gate import ScriptedGate
from tests.rig.threaded_server import ThreadedServer, read_all
from tests.rig.waiting import PATIENCE, wait_for

LONG = {"head": 600.0, "handshake": 600.0, "connect": 600.0}  # on a stalled machine no bound of a door passes by itself


class Canary(ThreadedServer):
    """A server in threads: counts accepts, keeps what it heard, answers by its script.

    `accepts` and `everything` are exact for what the door did before they are asked, so that a zero means nobody came.
    """

    def __init__(self, serve: Callable[[Canary, socket.socket], None]) -> None:
        self.heard = b""
        self._accepts = 0
        self._marks: dict[int, threading.Event] = {}
        super().__init__(lambda peer: serve(self, peer))

    @property
    def accepts(self) -> int:
        """The kernel's queue is first in, first out: when our own mark has come, so has everybody before it."""
        with socket.socket() as mark:
            mark.bind(("127.0.0.1", 0))
            seen = self._marks[mark.getsockname()[1]] = threading.Event()
            mark.connect(("127.0.0.1", self.port))
            assert seen.wait(PATIENCE)
        return self._accepts

    def everything(self) -> bytes:
        """All that was ever heard, once every connection to this server has ended."""
        assert self.accepts >= 0
        for thread in self._threads:
            thread.join(PATIENCE + 1)
        return self.heard

    def _is_client(self, address: Any) -> bool:
        mark = self._marks.pop(address[1], None)
        if mark is not None:
            mark.set()
            return False
        self._accepts += 1
        return True

    def hear(self, peer: socket.socket, size: int = 65536) -> bytes:
        data = peer.recv(size)
        self.heard += data
        return data


def echo(canary: Canary, peer: socket.socket) -> None:
    while data := canary.hear(peer):
        peer.sendall(data)


def answer_http(canary: Canary, peer: socket.socket) -> None:
    """Every request without a body gets its own request line back."""
    buffer = b""
    while True:
        while b"\r\n\r\n" not in buffer:
            data = canary.hear(peer)
            if not data:
                return
            buffer += data
        head, _, buffer = buffer.partition(b"\r\n\r\n")
        line = head.split(b"\r\n")[0]
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(line), line))


class Rig(LoopThread):
    """A loop with a gate, doors and canaries."""

    def __init__(self) -> None:
        super().__init__()
        self._skipped = 0.0
        self.loop.now = lambda: time.monotonic() + self._skipped
        self.gate = ScriptedGate(self.loop, lambda: self.run(lambda: None))
        self.doors: list[MixedDoor | TransparentDoor] = []
        self.canaries: list[Canary] = []
        self._listeners: list[CountingListener] = []
        self._clients: list[socket.socket] = []
        self._came = 0

    def listener(self) -> tuple[CountingListener, int]:
        raw = CountingListener(socket.AF_INET, socket.SOCK_STREAM)
        self._listeners.append(raw)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        raw.bind(("127.0.0.1", 0))
        raw.listen(1024)
        return raw, raw.getsockname()[1]

    def mixed(self, token: bytes | None = None, **limits: Any) -> int:
        raw, port = self.listener()
        self.doors.append(self.run(lambda: MixedDoor(self.loop, self.gate, raw, Limits(**{**LONG, **limits}), token)))
        return port

    def transparent(self, address: str, port: int, **limits: Any) -> int:
        """A door whose clients all meant to go to *address*:*port*."""
        raw, own = self.listener()
        self.doors.append(
            self.run(
                lambda: TransparentDoor(
                    self.loop, self.gate, raw, Limits(**{**LONG, **limits}), destination=lambda _: (address, port)
                )
            )
        )
        return own

    def canary(self, serve: Callable[[Canary, socket.socket], None] = echo, name: str = "allowed.test") -> Canary:
        canary = Canary(serve)
        self.canaries.append(canary)
        self.gate.routes[name] = ["127.0.0.1"]
        self.gate.ports[name] = canary.port
        return canary

    def client(self, port: int, *, receive_buffer: int | None = None) -> socket.socket:
        client = socket.socket()
        self._clients.append(client)
        if receive_buffer is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.settimeout(PATIENCE)
        client.connect(("127.0.0.1", port))
        self._came += 1
        return client

    def tunnel(self, port: int, authority: str = "allowed.test:443") -> socket.socket:
        client = self.client(port)
        client.sendall(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (authority.encode(), authority.encode()))
        assert read_head(client).startswith(b"HTTP/1.1 200 ")
        return client

    def skip(self, seconds: float) -> None:
        """Turn the loop's clock forward: what is due by then happens before anything else is run."""

        def turn() -> None:
            self._skipped += seconds

        self.run(turn)

    def wait_until_read(self, client: socket.socket) -> None:
        """Wait until the door has read all that *client* sent: nothing is under way, nothing waits at the door."""

        def unread() -> bool:
            flows = [flow for door in self.doors for flow in door._flows if flow.source == client.getsockname()]
            return not flows or any(_waiting(flow.client.sock, termios.FIONREAD) for flow in flows)

        wait_for(lambda: not _waiting(client, termios.TIOCOUTQ) and not self.run(unread))

    def freeze(self) -> None:
        """Stop the loop's clock: from now on only `skip` moves it."""
        frozen = time.monotonic()
        self.loop.now = lambda: frozen + self._skipped

    def come_to_rest(self) -> None:
        """Wait until the loop sleeps for most of a while: one that goes round and round never does."""
        wait_for(lambda: self.effort(0.2) < 0.2)

    @property
    def flows(self) -> int:
        count: int = self.run(lambda: sum(door.flows for door in self.doors))
        return count

    def settle(self) -> None:
        """Wait until every client that came has been let in and no flow is left."""
        wait_for(lambda: sum(listener.accepts for listener in self._listeners) >= self._came and self.flows == 0)

    def close_clients(self) -> None:
        for client in self._clients:
            client.close()

    def close(self) -> None:
        self.close_clients()
        for door in self.doors:
            self.run(door.close)
        assert self.flows == 0
        self.end()
        for canary in self.canaries:
            canary.close()
        assert self.gate.open == []


def _waiting(sock: Any, queue: int) -> int:
    """How many bytes are in a queue of this socket."""
    (count,) = struct.unpack("i", fcntl.ioctl(sock.fileno(), queue, bytes(4)))
    return int(count)


def steady(value: Callable[[], int]) -> bool:
    """Whether it stands still, and not at nothing, for a fifth of a second."""
    before = value()
    time.sleep(0.2)
    return 0 < before == value()


def read_head(client: socket.socket) -> bytes:
    """One byte at a time, so that nothing behind the head is lost."""
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        byte = client.recv(1)
        if not byte:
            break
        data += byte
    return data


def client_hello(name: str | None, *extensions: tuple[int, bytes]) -> bytes:
    """A ClientHello in one record, asking for *name*."""
    blocks = list(extensions)
    if name is not None:
        raw = name.encode("latin-1")
        entry = b"\0" + len(raw).to_bytes(2, "big") + raw
        blocks.append((0, len(entry).to_bytes(2, "big") + entry))
    joined = b"".join(kind.to_bytes(2, "big") + len(body).to_bytes(2, "big") + body for kind, body in blocks)
    body = b"\x03\x03" + bytes(32) + b"\0" + b"\0\x02\x13\x01" + b"\x01\0" + len(joined).to_bytes(2, "big") + joined
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + len(message).to_bytes(2, "big") + message


@pytest.fixture
def rig() -> Iterator[Rig]:
    before = own_descriptors()
    made = Rig()
    made.run(lambda: None)
    yield made
    made.close()
    wait_for(lambda: own_descriptors() <= before)


@pytest.fixture
def speak() -> Any:
    """The functions of this file, for tests that cannot import it."""

    class Speak:
        client_hello = staticmethod(client_hello)
        echo = staticmethod(echo)
        answer_http = staticmethod(answer_http)
        read_head = staticmethod(read_head)
        read_all = staticmethod(read_all)
        steady = staticmethod(steady)
        wait_for = staticmethod(wait_for)

    return Speak


@pytest.fixture(scope="session")
def speak_hello() -> Callable[..., bytes]:
    return client_hello
