"""Support for the tests of localhost: free ports of this host, a log that remembers, locks that nobody else has."""

from __future__ import annotations

import errno
import gc
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from netsandbox_portmap import reservation
from netsandbox_portmap.localhost_service import LocalhostService, SessionNetwork
from netsandbox_portmap.localhost_settings import LocalhostSettings
from netsandbox_portmap.reservation import Reservation

from netsandbox.backends.linux.helper_process import Message
from netsandbox.backends.namespaces.inside_sockets import InsideSockets
from netsandbox.backends.namespaces.reservation import NamespaceReservation
from netsandbox.backends.namespaces.session_sockets import SessionSockets
from netsandbox.runtime.loop import Loop
from tests.rig import ports
from tests.rig.fake_log import FakeLog
from tests.rig.pipe import Pipe
from tests.rig.waiting import turn_until

PATIENCE = 10.0
TCP = 6


@pytest.fixture
def log() -> FakeLog:
    return FakeLog()


@pytest.fixture
def free_range() -> Callable[[int], int]:
    """free_range(count) -> the first of so many neighbouring ports that nobody on this host has."""
    return ports.free_window


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder, and a lock file of the host, that only this test has."""
    monkeypatch.setattr(reservation, "HOST_LOCKS", str(tmp_path / "host-locks"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def reserve(state: Path, free_range: Callable[[int], int]) -> Iterator[Callable[..., Reservation]]:
    """reserve(**settings) -> a reservation from a pool of thirty free ports; closed at the end."""
    held: list[Reservation] = []
    first = free_range(31)

    def take(**settings: Any) -> Reservation:
        defaults = {"pool": (first, first + 29), "count": 10, "gateway_port": first + 30}
        held.append(NamespaceReservation(LocalhostSettings(**{**defaults, **settings}), str(state)))
        return held[-1]

    yield take
    for one in held:
        one.close()


class FakeHelper:
    """PID 1's part: this very network is the inside."""

    def __init__(self, loop: Loop) -> None:
        self.pid = os.getpid()
        self.inside: InsideSockets | None = None
        self._loop = loop

    def ask_socket(self, family: int) -> None:
        self._loop.call_later(0, lambda: self._give(family))

    def _give(self, family: int) -> None:
        assert self.inside is not None
        if family == socket.AF_NETLINK:  # no sock_diag: the tables of /proc are read
            self.inside.arrived(Message(b"N" + errno.EPERM.to_bytes(4, "little"), []))
            return
        made = socket.socket(family)
        made.setblocking(False)
        self.inside.arrived(Message(b"N", [made.detach()]))


class Scene:
    def __init__(self, log: Any, reservation: Reservation, doors: dict[str, Any], *, announce: bool) -> None:
        self.log = log
        self.errors: list[BaseException] = []
        self.loop = Loop(self.errors.append)
        self.reservation = reservation
        self.pipe = Pipe()
        helper = FakeHelper(self.loop)
        inside = helper.inside = InsideSockets(helper)  # type: ignore[arg-type]
        network = SessionNetwork(inside, SessionSockets(helper.pid, inside), doors)
        self.service = LocalhostService(
            self.loop, log, reservation, network, stderr=self.pipe.writing, announce=announce
        )

    @property
    def window(self) -> Any:
        assert self.reservation.window is not None
        return self.reservation.window

    def until(self, condition: Callable[[], bool]) -> None:
        turn_until(self.loop, condition)

    def hear(self, server: socket.socket, pid: int = 7) -> int:
        address, port = server.getsockname()[:2]
        self.service.listening(address, port, pid, "/bin/server")
        return int(port)

    def answer(self, address: str, port: int, protocol: int = TCP) -> tuple[int, int]:
        assert self.service.responder is not None
        return self.service.responder(address, port, protocol)

    def told(self) -> str:
        return self.pipe.text()

    def close(self) -> None:
        self.service.close()
        self.reservation.close()
        self.loop.close()
        self.pipe.close()
        assert self.errors == []


@pytest.fixture
def serve(reserve: Callable[..., Reservation], log: Any) -> Iterator[Callable[..., Scene]]:
    """serve(**settings) -> a session's localhost; afterwards nothing of it may be left open."""
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    scenes: list[Scene] = []

    def begin(doors: dict[str, Any] | None = None, *, announce: bool = False, **settings: Any) -> Scene:
        scenes.append(Scene(log, reserve(**settings), doors or {}, announce=announce))
        return scenes[-1]

    yield begin
    for scene in scenes:
        scene.close()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(PATIENCE)
        yield listening
