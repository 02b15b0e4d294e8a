"""The TCP door: same questions, same answers, and no client can hold it."""

from __future__ import annotations

import _socket
import errno
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import dnslib
import pytest
from netsandbox_dns import tcp_door as module
from netsandbox_dns.tcp_door import TcpDoor

from tests.rig.localhost import eventually
from tests.rig.threaded_server import read_exactly

PATIENCE = 20.0


def framed(name: str, qtype: str = "A") -> bytes:
    data = bytes(dnslib.DNSRecord.question(name, qtype).pack())
    return len(data).to_bytes(2, "big") + data


def heard(client: socket.socket) -> dnslib.DNSRecord:
    size = int.from_bytes(read_exactly(client, 2), "big")
    return dnslib.DNSRecord.parse(read_exactly(client, size))


def trickle(client: socket.socket, data: bytes) -> None:
    for byte in data:
        client.sendall(bytes((byte,)))
        time.sleep(0.05)


class Running:
    def __init__(self, loop: Any, session: Any) -> None:
        listener = _socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        self.place = listener.getsockname()
        self.loop = loop
        self.door = TcpDoor(loop, listener, session.resolver)
        self._beat()
        self._thread = threading.Thread(target=loop.run, daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        self.loop.call_later(0.02, self._beat)

    def dial(self) -> socket.socket:
        return socket.create_connection(self.place, PATIENCE)

    def close(self) -> None:
        self.loop._running = False
        self._thread.join(PATIENCE)
        self.door.close()


@pytest.fixture
def running(loop: Any, session: Any) -> Iterator[Running]:
    running = Running(loop, session)
    yield running
    running.close()


@pytest.mark.attack(68)
def test_the_same_filter_over_tcp(running: Running, session: Any) -> None:
    with running.dial() as client:
        client.sendall(framed("evil.test") + framed("allowed.test") + framed("allowed.test", "TXT"))
        assert [heard(client).header.rcode for _ in range(3)] == [3, 0, 5]
    assert [r["allowed"] for r in session.records] == [False, True, False]


def test_a_question_byte_by_byte(running: Running) -> None:
    with running.dial() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in framed("allowed.test"):
            client.sendall(bytes((byte,)))
        assert str(heard(client).a.rdata) == "198.18.0.1"


@pytest.mark.attack(192)
def test_a_trickle_is_closed_at_the_deadline(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DEADLINE", 0.3)
    # Without the deadline the question would come to its end, seven seconds on.
    with running.dial() as client, pytest.raises((ConnectionError, BrokenPipeError)):
        trickle(client, framed("allowed.test" + ".x" * 60))


@pytest.mark.attack(193)
def test_connections_are_bounded(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CONNECTIONS", 4)
    clients = [running.dial() for _ in range(8)]
    for client in clients[4:]:
        assert client.recv(1) == b""
    for client in clients[:4]:
        client.sendall(framed("allowed.test"))
        assert heard(client).header.rcode == 0
    for client in clients:
        client.close()
    eventually(lambda: not running.door.connections)
    with running.dial() as client:
        client.sendall(framed("allowed.test"))
        assert heard(client).header.rcode == 0


@pytest.mark.attack(202)
def test_a_client_that_never_reads_is_not_read_from(running: Running) -> None:
    with running.dial() as client, running.dial() as other:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(0.3)
        burst = framed("allowed.test") * 2000
        with pytest.raises(TimeoutError):
            client.sendall(burst * 1000)
        other.sendall(framed("allowed.test"))
        assert heard(other).header.rcode == 0
        held = max(len(connection._unsent) for connection in running.door.connections)
        assert held <= module.MAX_UNSENT + 4096


@pytest.mark.attack(195)
def test_without_descriptors_it_rests_and_recovers(running: Running) -> None:
    listener = running.door._listener
    real: Any = listener._sock
    calls: list[int] = []

    class Exhausted:
        def _accept(self) -> tuple[int, object]:
            calls.append(1)
            if len(calls) <= 2:
                raise OSError(errno.EMFILE, "Too many open files")
            return real._accept()  # type: ignore[no-any-return]

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

    listener._sock = Exhausted()  # type: ignore[assignment]
    with running.dial() as client:
        client.sendall(framed("allowed.test"))
        assert heard(client).header.rcode == 0
    assert len(calls) < 10


def test_an_answer_for_a_client_that_left_is_dropped(running: Running) -> None:
    with running.dial() as client:
        client.sendall(framed("allowed.test"))
        heard(client)
        (connection,) = running.door.connections
    eventually(lambda: not running.door.connections)
    connection.send(b"late")
