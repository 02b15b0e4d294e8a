"""A loop in a thread, sockets of this very namespace standing for those inside, and small servers to forward to.

On it: windows of a lock file that nobody else has, a publisher, and a door by name with pages behind it.
"""

from __future__ import annotations

import _socket
import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from netsandbox_portmap import fixed_ports
from netsandbox_portmap.assignment import Assignment
from netsandbox_portmap.gateway import Gateway, GatewayPlan
from netsandbox_portmap.published import Wanted
from netsandbox_portmap.publisher import Publisher, PublishPlan
from netsandbox_portmap.ranges import RangeLock
from netsandbox_portmap.window import HeldWindow, take_window

from netsandbox.runtime.loop import Loop
from netsandbox.runtime.relay import RelayPool
from tests.rig import localhost_scene, ports
from tests.rig.by_name import Book, Pages
from tests.rig.loop_thread import LoopThread
from tests.rig.processes import own_descriptors
from tests.rig.publishing import ALL, COUNT, FakeWindow
from tests.rig.threaded_server import ThreadedServer, read_all
from tests.rig.waiting import PATIENCE, wait_for


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


def echo(peer: socket.socket) -> None:
    while data := peer.recv(65536):
        peer.sendall(data)


class Rig(LoopThread):
    """What is given to `keep` is closed on the loop's own thread at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[dict[str, Any]] = []
        self.inside = PlainInside(self.loop)
        self.relays = RelayPool(self.loop)
        self._kept: list[Any] = []
        self._servers: list[ThreadedServer] = []
        self._clients: list[socket.socket] = []

    def note(self, event: str, **fields: Any) -> bool:
        self.notes.append({"event": event, **fields})
        return True

    def keep(self, thing: Any) -> Any:
        self._kept.append(thing)
        return thing

    def server(
        self, serve: Callable[[socket.socket], None] = echo, address: str = "127.0.0.1", port: int = 0
    ) -> ThreadedServer:
        server = ThreadedServer(serve, address, port)
        self._servers.append(server)
        return server

    def client(self, port: int, address: str = "127.0.0.1", **options: Any) -> socket.socket:
        client = socket.create_connection((address, port), timeout=PATIENCE, **options)
        self._clients.append(client)
        return client

    def close(self) -> None:
        for client in self._clients:
            client.close()
        for thing in reversed(self._kept):
            self.run(thing.close)
        self.run(self.relays.close)
        self.end()
        for server in self._servers:
            server.close()


@pytest.fixture
def rig() -> Iterator[Rig]:
    before = own_descriptors()
    made = Rig()
    yield made
    made.close()
    wait_for(lambda: own_descriptors() <= before)


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
        place = FakeWindow(base)
        assignment = Assignment(base, COUNT, {base + COUNT - 1}, speak.is_free)
        options = {"note": rig.note, "by_name_port": base + COUNT - 1, **more}  # as the gateway would set it
        fixed = {port: outer for port, outer in wanted.fixed.items() if outer is not None}
        note, by_name = options.pop("note"), options.pop("by_name_port")
        if "ours" in options:
            options["excluded"] = options.pop("ours")
        plan = PublishPlan(strategy, place, "shop", wanted, **options)
        made = Publisher(rig.loop, plan, assignment, rig.inside, rig.relays, note)
        made.by_name_port = by_name
        made.reserved = fixed_ports.reserve(fixed, strategy, place, device_given="device_given" in more)
        rig.keep(made)
        return made, place

    return build


@pytest.fixture
def neighbours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state folder in which only this test's sessions are found."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.fixture
def open_gateway(rig: Any, speak: Any, neighbours: None) -> Callable[..., Any]:
    """open_gateway(name, port, **plan) -> the part of one session; `book` says what it publishes."""

    def opened(name: str = "shop", port: int = 0, **plan: Any) -> Any:
        book = Book()
        wanted = GatewayPlan(name, port or speak.free_range(1), plan.pop("fallback", None), **plan)
        made = rig.keep(rig.run(lambda: Gateway(rig.loop, wanted, book, rig.inside, rig.relays)))
        made.book = book
        ready = threading.Event()
        rig.run(lambda: made.open(ready.set))
        assert ready.wait(PATIENCE)
        made.port = book.by_name_port
        return made

    return opened


@pytest.fixture
def door(open_gateway: Callable[..., Any]) -> Any:
    """The gateway of one session named shop."""
    return open_gateway()


@pytest.fixture
def raw_door(open_gateway: Callable[..., Any]) -> Any:
    """The same, whose servers see the Host that the client sent."""
    return open_gateway(keep_host=True)


@pytest.fixture
def pages(door: Any) -> Iterator[int]:
    """A Python web server, published as port 3000 and as the main one."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    door.book.publish(3000, server.server_port)
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


# The fixtures of a session's localhost.
free_range = localhost_scene.free_range
log = localhost_scene.log
reserve = localhost_scene.reserve
serve = localhost_scene.serve
server = localhost_scene.server
state = localhost_scene.state
