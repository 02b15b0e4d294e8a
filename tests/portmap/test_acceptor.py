"""Ports of the host: bound by nobody else, taken in turn, and patient when descriptors run out."""

from __future__ import annotations

import errno
import resource
import socket
import threading
from typing import Any

import pytest
from netsandbox_portmap import acceptor as module
from netsandbox_portmap.acceptor import Acceptor, bind, bind_all, listen_all


@pytest.fixture
def accept(rig: Any) -> Any:
    """An acceptor and the list of what it received."""
    received: list[Any] = []

    class Received:
        def close(self) -> None:
            for sock in received:
                sock.close()

    rig.keep(Received())
    made = rig.keep(rig.run(lambda: Acceptor(rig.loop, bind("127.0.0.1", 0), received.append)))
    return made, received


def test_everybody_in_the_queue_is_received_in_one_round(rig: Any, accept: Any, speak: Any) -> None:
    made, received = accept
    hold, held = threading.Event(), threading.Event()

    def stop() -> None:
        held.set()
        hold.wait(20)

    waiting = threading.Thread(target=lambda: rig.run(stop))
    waiting.start()
    held.wait(20)
    for _ in range(50):
        rig.client(made.port)
    hold.set()
    waiting.join()
    rig.run(lambda: None)
    speak.wait_for(lambda: len(received) == 50)
    assert all(sock.gettimeout() == 0 for sock in received)
    assert all(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for sock in received)


@pytest.mark.attack(195)
def test_without_descriptors_it_pauses_without_spinning_and_goes_on(rig: Any, accept: Any, speak: Any) -> None:
    made, received = accept
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    client = socket.socket()
    with client:
        resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 1, before[1]))
        try:
            client.connect(("127.0.0.1", made.port))
            assert rig.effort(0.35) < 0.2
            assert received == []
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        speak.wait_for(lambda: len(received) == 1)


def test_it_can_be_closed_while_it_pauses(rig: Any, accept: Any) -> None:
    made, _ = accept
    rig.run(lambda: made._rest(made._listener))
    rig.run(made.close)
    rig.run(made.close)
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", made.port)) == errno.ECONNREFUSED


def test_what_it_receives_may_close_it(rig: Any, speak: Any) -> None:
    made: Any = None

    def receive(sock: Any) -> None:
        sock.close()
        made.close()

    made = rig.run(lambda: Acceptor(rig.loop, bind("127.0.0.1", 0), receive))
    assert speak.read_all(rig.client(made.port)) == b""


@pytest.mark.parametrize("reuse", [0, 1])
def test_a_bound_port_is_nobody_elses(reuse: int) -> None:
    ours = bind("127.0.0.1", 0)
    with socket.socket() as theirs:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
        for address in ("127.0.0.1", "0.0.0.0"):
            with pytest.raises(OSError, match="in use"):
                theirs.bind((address, ours.getsockname()[1]))
    ours.close()


@pytest.mark.parametrize("reuse", [0, 1])
def test_a_port_somebody_listens_on_is_not_shared(reuse: int) -> None:
    with socket.socket() as theirs:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, reuse)
        theirs.bind(("0.0.0.0", 0))
        theirs.listen()
        for address in ("127.0.0.1", "127.9.8.7"):
            with pytest.raises(OSError, match="in use"):
                bind(address, theirs.getsockname()[1])


def test_our_own_ended_connections_do_not_keep_us_out(rig: Any, accept: Any, speak: Any) -> None:
    made, received = accept
    rig.client(made.port)
    speak.wait_for(lambda: len(received) == 1)
    rig.run(made.close)
    bind("127.0.0.1", made.port).close()


def test_all_or_none_is_bound(rig: Any, speak: Any) -> None:
    taken = rig.server(address="::1", port=speak.free_range(1))
    with pytest.raises(OSError, match="in use"):
        bind_all(("127.0.0.1", "::1"), taken.port)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", taken.port))


def test_all_or_none_listens(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = bind("127.0.0.1", 0), bind("127.0.0.1", 0)
    port = first.getsockname()[1]
    real = Acceptor

    def second_fails(loop: Any, sock: Any, receive: Any) -> Any:
        if sock is second:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        return real(loop, sock, receive)

    monkeypatch.setattr(module, "Acceptor", second_fails)
    with pytest.raises(OSError, match="in use"):
        rig.run(lambda: listen_all(rig.loop, [first, second], print))
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


def test_a_client_that_left_the_queue_is_nobody(rig: Any) -> None:
    answers = [ConnectionAbortedError(), BlockingIOError()]

    class Listener:
        family, proto = socket.AF_INET, 0

        def _accept(self) -> Any:
            raise answers.pop(0)

    made = rig.keep(rig.run(lambda: Acceptor(rig.loop, bind("127.0.0.1", 0), print)))
    real, made._listener = made._listener, Listener()
    rig.run(lambda: made._on_listener(1))
    made._listener = real
    assert answers == []
