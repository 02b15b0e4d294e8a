"""The UDP door on a real socket: answers come back from the address that was asked, and a flood is served in turns."""

from __future__ import annotations

import _socket
import socket
import threading
from collections.abc import Iterator
from typing import Any

import dnslib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_dns import udp_door as module
from netsandbox_dns.udp_door import UdpDoor

from netsandbox.runtime.loop import Loop
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


def batch_of(names: list[str], edns: bool) -> list[bytes]:
    """Queries with distinct ids."""
    queries = []
    for number, name in enumerate(names):
        query = dnslib.DNSRecord.question(name)
        query.header.id = number
        if edns:
            query.add_ar(dnslib.EDNS0(udp_len=1232))
        queries.append(bytes(query.pack()))
    return queries


LONG = ".".join(["a" * 63] * 3 + ["b" * 50])
NAMES = st.lists(st.sampled_from(["allowed.test", "x.evil.test", "yy.evil.test", "localhost", LONG]), max_size=40)


@given(NAMES, st.booleans(), st.integers(1, 3))
def test_replies_that_leave_together_are_those_that_would_leave_alone(names: list[str], edns: bool, many: int) -> None:
    """One client's replies of one length leave in one call (UDP_SEGMENT), first those of new names, then repeats."""
    loop, session = Loop(), Session()
    sock, port = opened(socket.AF_INET, "0.0.0.0")
    door = UdpDoor(loop, sock, session.resolver)
    queries = batch_of(names, edns)
    clients = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(many)]
    for _ in range(2):
        for number, query in enumerate(queries):
            clients[number % many].sendto(query, ("127.0.0.1", port))
        door._ready(1)
        for number, client in enumerate(clients):
            client.settimeout(20)
            mine = queries[number::many]
            assert sorted(client.recv(4096) for _ in mine) == sorted(session.resolver.answer(q, "udp") for q in mine)
    for client in clients:
        client.close()
    door.close()
    loop.close()


@pytest.mark.parametrize("name", ["allowed.test", LONG])
def test_a_whole_batch_of_one_client_is_answered(loop: Any, session: Any, name: str) -> None:
    """The kernel limits how many datagrams, and how many bytes, one call may send."""
    sock, port = opened(socket.AF_INET, "0.0.0.0")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    door = UdpDoor(loop, sock, session.resolver)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        client.settimeout(20)
        for _ in range(2):
            for query in batch_of([name] * module.BATCH, edns=True):
                client.sendto(query, ("127.0.0.1", port))
            door._ready(1)
            assert sorted(client.recv(4096)[1] for _ in range(module.BATCH)) == list(range(module.BATCH))
    door.close()


def test_a_client_that_is_gone_costs_no_other_client_its_replies(loop: Any, session: Any) -> None:
    sock, port = opened(socket.AF_INET, "0.0.0.0")
    door = UdpDoor(loop, sock, session.resolver)
    gone, client = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    for query in batch_of(["allowed.test"] * 6, edns=False):
        gone.sendto(query, ("127.0.0.1", port))
        client.sendto(query, ("127.0.0.1", port))
    gone.close()
    door._ready(1)
    client.settimeout(20)
    assert sorted(client.recv(4096)[1] for _ in range(6)) == list(range(6))
    client.close()
    door.close()


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
    assert sorted(served(loop, Session, log, names)) == sorted((name, False) for name in names)
    assert log.calls == ["hold", "release"]


def test_every_reply_is_a_failure_when_the_records_of_its_batch_were_not_written(loop: Any) -> None:
    """INV-5, the repeat of a name in the same batch included."""
    log = HeldLog()
    log.written = False
    assert served(loop, Session, log, ["allowed.test.", "allowed.test."]) == [("allowed.test.", True)] * 2
