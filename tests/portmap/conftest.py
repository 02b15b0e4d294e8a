"""A loop in a thread, sockets of this very namespace standing for those inside, and small servers to forward to.

On it: windows of a lock file that nobody else has, a publisher, and a door by name with pages behind it.
"""

from __future__ import annotations

import _socket
import gc
import http.server
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from netsandbox_portmap.assignment import Assignment
from netsandbox_portmap.by_name import ByName
from netsandbox_portmap.published import Wanted
from netsandbox_portmap.publisher import Publisher, reserve
from netsandbox_portmap.ranges import RangeLock
from netsandbox_portmap.window import HeldWindow, take_window

from netsandbox.forwarding import Forwarding
from netsandbox.loop import Loop
from tests.rig import ports
from tests.rig.by_name import Book, Pages
from tests.rig.publishing import ALL, COUNT, Place

PATIENCE = 20.0


class PlainInside:
    """`Inside` without an inside. `later`: answer on the next turn; `empty`: the session gives no socket."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.later = self.empty = False
        self.taken: list[int] = []
        self.waiting: list[Callable[[], None]] | None = None

    def take(self, family: int, done: Callable[[_socket.socket | None], None]) -> None:
        self.taken.append(family)
        if self.waiting is not None:
            self.waiting.append(lambda: self._give(family, done))
        elif self.later:
            self.loop.call_later(0.01, lambda: self._give(family, done))
        else:
            self._give(family, done)

    def _give(self, family: int, done: Callable[[_socket.socket | None], None]) -> None:
        done(None if self.empty else _socket.socket(family, _socket.SOCK_STREAM | _socket.SOCK_NONBLOCK))


class Server:
    """Serves each connection in a thread of its own by `serve(peer)`."""

    def __init__(self, serve: Callable[[socket.socket], None], address: str = "127.0.0.1", port: int = 0) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._serve = serve
        self._socket = socket.create_server((address, port), family=family, backlog=512)
        self.address = address
        self.port: int = self._socket.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            peer.settimeout(PATIENCE)
            thread = threading.Thread(target=self._one, args=(peer,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _one(self, peer: socket.socket) -> None:
        try:
            with peer:
                self._serve(peer)
        except OSError:
            pass

    def close(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()
        for thread in (self._thread, *self._threads):
            thread.join(PATIENCE + 1)


def echo(peer: socket.socket) -> None:
    while data := peer.recv(65536):
        peer.sendall(data)


class Rig:
    """`run` does a thing on the loop's own thread; what is given to `keep` is closed there at the end."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []
        self.notes: list[dict[str, Any]] = []
        self.loop = Loop(self.errors.append)
        self.inside = PlainInside(self.loop)
        self.forwarding = Forwarding(self.loop)
        self._kept: list[Any] = []
        self._servers: list[Server] = []
        self._clients: list[socket.socket] = []
        self._errands: list[Callable[[], None]] = []
        self._bell = socket.socketpair()
        self._bell[0].setblocking(False)
        self.loop.watch(self._bell[0].fileno(), 1, self._on_bell)
        self._thread = threading.Thread(target=self.loop.run, daemon=True)
        self._thread.start()

    def _on_bell(self, events: int) -> None:
        self._bell[0].recv(4096)
        while self._errands:
            self._errands.pop(0)()

    def run(self, errand: Callable[[], Any]) -> Any:
        done, result, failure = threading.Event(), [], []

        def do() -> None:
            try:
                result.append(errand())
            except Exception as error:
                failure.append(error)
            finally:
                done.set()

        self._errands.append(do)
        self._bell[1].send(b"!")
        assert done.wait(PATIENCE)
        if failure:
            raise failure[0]
        return result[0]

    def note(self, event: str, **fields: Any) -> bool:
        self.notes.append({"event": event, **fields})
        return True

    def keep(self, thing: Any) -> Any:
        self._kept.append(thing)
        return thing

    def server(
        self, serve: Callable[[socket.socket], None] = echo, address: str = "127.0.0.1", port: int = 0
    ) -> Server:
        server = Server(serve, address, port)
        self._servers.append(server)
        return server

    def client(self, port: int, address: str = "127.0.0.1", **options: Any) -> socket.socket:
        client = socket.create_connection((address, port), timeout=PATIENCE, **options)
        self._clients.append(client)
        return client

    def effort(self, seconds: float) -> float:
        """How much of a while the loop spends awake, 0 to 1."""
        before = self.run(time.thread_time)
        time.sleep(seconds)
        spent: float = self.run(time.thread_time) - before
        return spent / seconds

    def close(self) -> None:
        for client in self._clients:
            client.close()
        for thing in reversed(self._kept):
            self.run(thing.close)
        self.run(self.forwarding.close)
        self.run(self.loop.stop)
        self._thread.join(PATIENCE)
        self.loop.close()
        for end in self._bell:
            end.close()
        for server in self._servers:
            server.close()
        assert self.errors == []


def wait_for(condition: Callable[[], bool], patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.002)


def read_all(client: socket.socket) -> bytes:
    """Until the end of the stream; a reset counts as an end with nothing more."""
    data = b""
    while True:
        try:
            more = client.recv(65536)
        except ConnectionResetError:
            return data
        if not more:
            return data
        data += more


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def rig() -> Iterator[Rig]:
    before = descriptors()
    made = Rig()
    yield made
    made.close()
    wait_for(lambda: descriptors() <= before)


@pytest.fixture
def speak(rig: Rig) -> Any:
    """The functions of this file, for tests that cannot import it, and the search for ports."""

    def wait_for_turn(condition: Callable[[], bool]) -> None:
        """The turn in which it came true has ended: what else happens in it has happened, too."""
        wait_for(condition)
        rig.run(lambda: None)

    class Speak:
        echo = staticmethod(echo)
        free_range = staticmethod(ports.free_window)
        is_free = staticmethod(ports.is_free)
        read_all = staticmethod(read_all)
        wait_for = staticmethod(wait_for_turn)

    return Speak


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A lock file."""
    return str(tmp_path / "ports")


@pytest.fixture
def take(path: str) -> Iterator[Callable[..., HeldWindow]]:
    """Takes a window as a session of its own would, far away from the pool of real sessions."""
    opened: list[RangeLock] = []

    def taken(**options: Any) -> HeldWindow:
        opened.append(RangeLock.open(path, shared=True))
        return take_window(opened[-1], **{"pool": (50000, 50999), "whole": False, **options})

    yield taken
    for locks in opened:
        locks.close()


@pytest.fixture
def make(rig: Any, speak: Any) -> Any:
    """A publisher with a window of COUNT ports, the last of which is the by-name port."""

    def build(strategy: str = "isolate", wanted: Wanted = ALL, **more: Any) -> Any:
        base = speak.free_range(COUNT)
        place = Place(base)
        assignment = Assignment(base, COUNT, {base + COUNT - 1}, speak.is_free)
        options = {"note": rig.note, "by_name_port": base + COUNT - 1, **more}
        fixed = {port: outer for port, outer in wanted.fixed.items() if outer is not None}
        note, by_name = options.pop("note"), options.pop("by_name_port")
        made = Publisher(
            rig.loop,
            strategy,
            place,
            assignment,
            rig.inside,
            rig.forwarding,
            note,
            "shop",
            wanted,
            by_name,
            reserved=reserve(fixed, strategy, place, device_given="device_given" in more),
            **options,
        )
        rig.keep(made)
        return made, place

    return build


@pytest.fixture
def door(rig: Any, speak: Any) -> Any:
    """The door of a session named shop; `book` says what it publishes."""
    port = speak.free_range(1)
    book = Book(port)
    made = rig.keep(rig.run(lambda: ByName(rig.loop, port, "shop", book, rig.inside, rig.forwarding)))
    made.book = book
    return made


@pytest.fixture
def pages(door: Any) -> Iterator[int]:
    """A Python web server, published as port 3000 and as the main one."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    door.book.entries = {None: [("127.0.0.1", server.server_port)], 3000: [("127.0.0.1", server.server_port)]}
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()
