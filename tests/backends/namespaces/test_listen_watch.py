"""Noticing who listens: the call goes on at once, and what came of it is looked up, never trusted."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from netsandbox.backends.linux import procfs
from netsandbox.backends.linux.seccomp import syscall_table
from netsandbox.backends.linux.socket_table import listeners
from netsandbox.backends.namespaces import listen_watch
from netsandbox.backends.namespaces.listen_watch import LOOKS, MAX_PATIENT, SOON, ListenWatch

CALLS = syscall_table(os.uname().machine).calls


class FakeLoop:
    """Keeps what was promised for later."""

    def __init__(self) -> None:
        self.later: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, seconds: float, callback: Callable[[], None]) -> None:
        self.later.append((seconds, callback))

    def turn(self) -> float:
        seconds, callback = self.later.pop(0)
        callback()
        return seconds


class OwnSockets:
    """The sockets of this very network, in the place of the session's."""

    def __init__(self) -> None:
        self.looks = 0

    def listening(self) -> list[tuple[str, int, str]]:
        self.looks += 1
        return [found for name in ("tcp", "tcp6") for found in listeners(procfs.read(f"/proc/self/net/{name}"))]


class Scene:
    def __init__(self, trapped: Any) -> None:
        self.trapped = trapped
        self.loop = FakeLoop()
        self.sockets = OwnSockets()
        self.heard: list[tuple[str, int, int, str]] = []
        self.listening = ListenWatch(
            self.loop,  # type: ignore[arg-type]
            trapped.listener,
            self.sockets,  # type: ignore[arg-type]
            lambda *what: self.heard.append(what),
        )

    def serve(self, sock: socket.socket | int, pid: int = 0) -> None:
        self.listening.serve(self.trapped.call("listen", sock, pid=pid))


@pytest.fixture
def scene(trapped: Any) -> Scene:
    return Scene(trapped)


def test_it_takes_listen_and_nothing_else(scene: Scene) -> None:
    """CONTINUE is said here only: every other call of the filter must go elsewhere."""
    for name, number in CALLS.items():
        call = scene.trapped.call(name, 0)
        assert call.number == number
        assert scene.listening.takes(call) == (name == "listen")


def test_a_socket_that_listens_is_heard_of_with_its_holder(scene: Scene) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        scene.serve(server)
        assert len(scene.trapped.listener.passed) == 1
        assert scene.heard == [(*server.getsockname(), os.getpid(), "/bin/probe")]
        assert scene.loop.later == []


@pytest.mark.parametrize("address", ["::1", "::"])
def test_ipv6_listeners_are_heard_of(scene: Scene, address: str) -> None:
    with socket.create_server((address, 0), family=socket.AF_INET6) as server:
        scene.serve(server)
        assert [heard[:2] for heard in scene.heard] == [server.getsockname()[:2]]


def test_a_call_that_takes_its_time_is_found_at_a_later_look(scene: Scene) -> None:
    """The call goes on while we look."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        scene.serve(sock)
        assert scene.heard == []
        assert scene.loop.turn() == LOOKS[0]
        sock.listen()
        assert scene.loop.turn() == LOOKS[1]
        assert [heard[1] for heard in scene.heard] == [sock.getsockname()[1]]
        assert scene.loop.later == []


def test_a_call_that_failed_is_given_up(scene: Scene) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        scene.serve(sock)
        turns = [scene.loop.turn() for _ in LOOKS]
    assert turns == list(LOOKS)
    assert (scene.loop.later, scene.heard) == ([], [])
    assert scene.sockets.looks == 1 + len(LOOKS)


def test_only_so_many_are_looked_for_beyond_the_first_moments(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that makes failing calls as fast as it can has each looked for soon, and few of them for long."""
    monkeypatch.setattr(scene.sockets, "listening", list)
    many = MAX_PATIENT + 50
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        for _ in range(many):
            scene.serve(sock)
        for delay in SOON:
            assert [scene.loop.turn() for _ in range(many)] == [delay] * many
        for delay in LOOKS[len(SOON) :]:
            assert [scene.loop.turn() for _ in range(MAX_PATIENT)] == [delay] * MAX_PATIENT
        assert scene.loop.later == []
        scene.serve(sock)  # and there is room again
        assert [scene.loop.turn() for _ in LOOKS] == list(LOOKS)


def test_calls_that_fail_by_the_hundred_are_looked_for_shortly(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may make them as fast as it can: only so many of them are waited for during seconds."""
    monkeypatch.setattr(listen_watch, "MAX_PATIENT", 2)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        for _ in range(5):
            scene.serve(sock)
        for _ in range(5 * len(listen_watch.SOON)):
            scene.loop.turn()
        assert len(scene.loop.later) == 2
        while scene.loop.later:
            scene.loop.turn()
        scene.serve(sock)  # there is room again
        for _ in listen_watch.SOON:
            scene.loop.turn()
        assert len(scene.loop.later) == 1


@pytest.mark.parametrize("kind", ["pipe", "closed", "huge"])
def test_what_is_no_socket_is_let_go_on_and_not_looked_for(scene: Scene, kind: str) -> None:
    """The kernel will say so itself."""
    reading, writing = os.pipe()
    scene.serve({"pipe": reading, "closed": 1 << 20, "huge": 0xFFFFFFFF}[kind])
    os.close(reading)
    os.close(writing)
    assert len(scene.trapped.listener.passed) == 1
    assert (scene.sockets.looks, scene.loop.later, scene.heard) == (0, [], [])


def test_a_caller_that_died_is_let_go_on_without_a_look(scene: Scene) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    scene.serve(0, pid=child.pid)
    assert len(scene.trapped.listener.passed) == 1
    assert (scene.sockets.looks, scene.heard) == (0, [])


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ESRCH, errno.ENOENT])
def test_a_process_that_cannot_be_asked_after_is_not_published(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(thread: int) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(procfs, "process_of", fail)
    with socket.create_server(("127.0.0.1", 0)) as server:
        scene.serve(server)
    assert len(scene.trapped.listener.passed) == 1
    assert scene.heard == []


@pytest.mark.attack(116)
def test_a_descriptor_that_is_swapped_publishes_only_what_listens(scene: Scene) -> None:
    """116: another thread puts a second socket at the number: the inode that was seen is looked for, and no other."""
    with socket.create_server(("127.0.0.1", 0)) as other, socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        scene.serve(sock)
        os.dup2(other.fileno(), sock.fileno())
        for _ in LOOKS:
            scene.loop.turn()
    assert scene.heard == []


def test_the_upper_half_of_the_register_is_not_part_of_the_number(scene: Scene) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        scene.serve(0xDEAD << 32 | server.fileno())
        assert len(scene.heard) == 1
