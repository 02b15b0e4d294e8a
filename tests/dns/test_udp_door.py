"""The UDP door on a real socket: answers come back from the address that was asked, and a flood is served in turns."""

from __future__ import annotations

import _socket
import socket
import threading
from collections.abc import Iterator
from typing import Any

import dnslib
import pytest
from netsandbox_dns import udp_door as module
from netsandbox_dns.udp_door import UdpDoor

from tests.dns.conftest import Session


def question(name: str, qtype: str = "A") -> bytes:
    return bytes(dnslib.DNSRecord.question(name, qtype).pack())


@pytest.fixture
def running(loop: Any) -> Iterator[Any]:
    """Starts the loop in a thread of its own once the doors are there."""
    threads: list[threading.Thread] = []

    def start() -> None:
        threads.append(threading.Thread(target=loop.run, daemon=True))
        threads[0].start()

    def beat() -> None:
        loop.call_later(0.02, beat)

    beat()
    yield start
    loop._running = False
    for thread in threads:
        thread.join(20)


def opened(family: int, address: str) -> tuple[_socket.socket, int]:
    sock = _socket.socket(family, _socket.SOCK_DGRAM)
    sock.bind((address, 0))
    return sock, sock.getsockname()[1]


@pytest.mark.parametrize("asked", ["127.0.0.1", "127.0.0.53", "127.9.8.7"])
def test_a_reply_comes_from_the_address_that_was_asked(loop: Any, running: Any, session: Any, asked: str) -> None:
    sock, port = opened(socket.AF_INET, "0.0.0.0")
    door = UdpDoor(loop, sock, session.resolver)
    running()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(20)
        for _ in range(3):
            client.sendto(question("allowed.test"), (asked, port))
            data, source = client.recvfrom(4096)
            assert source == (asked, port)
            assert str(dnslib.DNSRecord.parse(data).a.rdata) == "198.18.0.1"
    loop._running = False
    door.close()


def test_one_socket_serves_both_families(loop: Any, running: Any, session: Any) -> None:
    sock = _socket.socket(socket.AF_INET6, _socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.bind(("::", 0))
    port = sock.getsockname()[1]
    door = UdpDoor(loop, sock, session.resolver)
    running()
    for family, address in ((socket.AF_INET6, "::1"), (socket.AF_INET, "127.0.0.5")):
        with socket.socket(family, socket.SOCK_DGRAM) as client:
            client.settimeout(20)
            client.sendto(question("allowed.test"), (address, port))
            assert client.recvfrom(4096)[1][:2] == (address, port)
    loop._running = False
    door.close()


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_socket_with_one_address_answers_from_it_without_asking_the_kernel(
    loop: Any, running: Any, session: Any, family: int, address: str
) -> None:
    """What the options are called differs between systems; on a Mac their numbers mean others."""
    sock, port = opened(family, address)
    door = UdpDoor(loop, sock, session.resolver, bound=True)
    options = {socket.AF_INET: (socket.IPPROTO_IP, 8), socket.AF_INET6: (socket.IPPROTO_IPV6, 49)}
    assert sock.getsockopt(*options[family]) == 0
    running()
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.settimeout(20)
        client.sendto(question("allowed.test"), (address, port))
        data, source = client.recvfrom(4096)
    assert source[:2] == (address, port)
    assert str(dnslib.DNSRecord.parse(data).a.rdata) == "198.18.0.1"
    loop._running = False
    door.close()


@pytest.mark.attack(78)
def test_garbage_and_silence_leave_the_door_open(loop: Any, running: Any, session: Any) -> None:
    sock, port = opened(socket.AF_INET, "127.0.0.1")
    door = UdpDoor(loop, sock, session.resolver)
    running()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(20)
        client.connect(("127.0.0.1", port))
        for data in (b"", b"\0", b"\xff" * 2000, b"\0" * 5000):
            client.send(data)
        client.send(question("allowed.test"))
        replies = [dnslib.DNSRecord.parse(client.recv(4096)) for _ in range(2)]
    assert sorted(reply.header.rcode for reply in replies) == [0, 1]
    loop._running = False
    door.close()


@pytest.mark.attack(199)
def test_a_flood_is_served_in_bounded_turns(loop: Any, session: Any) -> None:
    sock, port = opened(socket.AF_INET, "127.0.0.1")
    door = UdpDoor(loop, sock, session.resolver)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", port))
        for i in range(module.BATCH + 10):
            client.send(question(f"n{i}.evil.test"))
        door._ready(1)
        assert session.counted() == module.BATCH
        door._ready(1)
        assert session.counted() == module.BATCH + 10
    door.close()


def test_a_client_that_is_gone_and_an_answer_after_the_end_do_no_harm(loop: Any, session: Any) -> None:
    sock, port = opened(socket.AF_INET, "127.0.0.1")
    door = UdpDoor(loop, sock, session.resolver)
    for _ in range(2):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.sendto(question("allowed.test"), ("127.0.0.1", port))
        door._ready(1)
    door.close()
    door.close()
    door._send(b"late", ("127.0.0.1", 9), [])
    session.resolver.flush()
    assert session.counted() == 2


class HeldLog:
    """Collects like the audit log; `written` says whether its records reach the file."""

    def __init__(self) -> None:
        self.written = True
        self.calls: list[str] = []

    def hold(self) -> None:
        self.calls.append("hold")

    def release(self) -> bool:
        self.calls.append("release")
        return self.written


def served(loop: Any, make_session: Any, log: HeldLog, names: list[str]) -> list[tuple[str, bool]]:
    """The names that are answered when all queries wait for the door at once, and whether the answer is SERVFAIL."""
    sock, port = opened(socket.AF_INET, "127.0.0.1")
    door = UdpDoor(loop, sock, make_session(log=log).resolver)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        for name in names:
            client.sendto(question(name), ("127.0.0.1", port))
        door._ready(1)
        client.settimeout(0.2)
        answered = []
        try:
            while True:
                reply = dnslib.DNSRecord.parse(client.recv(4096))
                answered.append((str(reply.q.qname), reply.header.rcode == 2))
                assert not (reply.rr and reply.header.rcode)
        except TimeoutError:
            pass
    door.close()
    return answered


def test_new_names_that_wait_together_are_recorded_in_one_step(loop: Any) -> None:
    log = HeldLog()
    names = ["allowed.test.", "nowhere.test.", "allowed.test.", "other.test."]
    assert served(loop, Session, log, names) == [(name, False) for name in names]
    assert log.calls == ["hold", "release"]


def test_every_reply_is_a_failure_when_the_records_of_its_batch_were_not_written(loop: Any) -> None:
    """INV-5, the repeat of a name in the same batch included."""
    log = HeldLog()
    log.written = False
    assert served(loop, Session, log, ["allowed.test.", "allowed.test."]) == [("allowed.test.", True)] * 2
