"""The accept loop: newcomers are taken in rounds, and wait when descriptors run out."""

from __future__ import annotations

import _socket
import errno
import os
import resource
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from netsandbox.runtime import listener as module
from netsandbox.runtime.listener import Listener
from tests.rig.loop_thread import LoopThread
from tests.rig.waiting import PATIENCE, wait_for


class Scene(LoopThread):
    """A listener on loopback, the sockets that it received, and its clients."""

    def __init__(self) -> None:
        super().__init__()
        self.received: list[_socket.socket] = []
        self.sources: list[Any] = []
        self.clients: list[socket.socket] = []
        bound = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        bound.bind(("127.0.0.1", 0))
        bound.listen(1024)
        self.port = bound.getsockname()[1]
        self.listener = self.run(lambda: Listener(self.loop, bound, self.receive))

    def receive(self, sock: _socket.socket, source: Any) -> None:
        self.received.append(sock)
        self.sources.append(source)

    def client(self) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        self.clients.append(client)
        return client

    def close(self) -> None:
        self.run(self.listener.close)
        self.end()
        for sock in (*self.received, *self.clients):
            sock.close()


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


def test_a_whole_queue_is_received_in_one_round(scene: Scene) -> None:
    hold, held = threading.Event(), threading.Event()

    def block() -> None:
        held.set()
        hold.wait(PATIENCE)

    blocking = threading.Thread(target=lambda: scene.run(block))
    blocking.start()
    held.wait(PATIENCE)
    for _ in range(50):
        scene.client()
    hold.set()
    blocking.join()
    scene.run(lambda: None)
    wait_for(lambda: len(scene.received) == 50)
    assert all(sock.gettimeout() == 0 for sock in scene.received)
    assert {source[1] for source in scene.sources} == {client.getsockname()[1] for client in scene.clients}


@pytest.mark.attack(195)
def test_without_descriptors_it_pauses_without_spinning_and_goes_on(scene: Scene) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as client:
        resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 1, before[1]))
        try:
            client.connect(("127.0.0.1", scene.port))
            assert scene.effort(0.35) < 0.2
            assert scene.received == []
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        wait_for(lambda: len(scene.received) == 1)


class FailingSocket:
    """Stands for the listening socket; accept() raises *errors* in turn, and then the queue is empty."""

    def __init__(self, real: Any, *errors: OSError) -> None:
        self.errors = [*errors, BlockingIOError()]
        self._real = real

    def _accept(self) -> Any:
        raise self.errors.pop(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def fail(scene: Scene, *errors: OSError) -> FailingSocket:
    """Run one round in which accept() fails."""
    listener = scene.listener
    real, failing = listener._sock, FailingSocket(listener._sock, *errors)
    listener._sock = failing
    scene.run(lambda: listener._on_ready(1))
    listener._sock = real
    return failing


def test_it_can_be_closed_while_it_pauses(scene: Scene) -> None:
    fail(scene, OSError(errno.EMFILE, "Too many open files"))
    scene.run(scene.listener.close)
    scene.run(scene.listener.close)
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", scene.port)) == errno.ECONNREFUSED
    assert scene.run(scene.loop._time_to_wait) == -1


def test_a_client_that_left_the_queue_is_skipped(scene: Scene) -> None:
    assert fail(scene, ConnectionAbortedError()).errors == []


def test_the_receiver_may_close_it(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def receive(sock: _socket.socket, source: Any) -> None:
        scene.receive(sock, source)
        scene.listener.close()

    scene.listener._receive = receive
    scene.client()
    wait_for(lambda: len(scene.received) == 1)
    scene.run(lambda: None)
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", scene.port)) == errno.ECONNREFUSED


def test_a_stopped_listener_leaves_newcomers_in_the_queue(scene: Scene) -> None:
    scene.run(scene.listener.stop)
    scene.run(scene.listener.stop)
    scene.client()
    scene.run(lambda: None)
    assert scene.received == []
    scene.run(scene.listener.resume)
    wait_for(lambda: len(scene.received) == 1)


def test_a_resume_takes_back_the_pause(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 60.0)
    fail(scene, OSError(errno.EMFILE, "Too many open files"))
    scene.run(scene.listener.resume)
    scene.client()
    wait_for(lambda: len(scene.received) == 1)
    assert scene.run(scene.loop._time_to_wait) == -1


def test_a_socket_of_ipv6_leaves_the_port_to_ipv4_and_a_refused_bind_leaves_no_socket_open() -> None:
    first = module.bind_socket("::1", 0, _socket.SOCK_STREAM)
    port = first.getsockname()[1]
    second = module.bind_socket("127.0.0.1", port, _socket.SOCK_STREAM)
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(OSError, match="in use"):
        module.bind_socket("127.0.0.1", port, _socket.SOCK_STREAM)
    assert len(os.listdir("/dev/fd")) == before
    assert second.getsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR) == 0
    first.close()
    second.close()


def test_only_a_socket_that_reuses_its_address_shares_it() -> None:
    sock = module.bind_socket("127.0.0.1", 0, _socket.SOCK_STREAM, reuse=True)
    assert sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR)
    sock.close()
