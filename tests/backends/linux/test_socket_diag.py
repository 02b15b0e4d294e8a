"""The kernel's list of sockets: the same as pyroute2 reads, and nothing in an answer makes the reader hang."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.linux import socket_diag
from netsandbox.backends.linux.socket_diag import (
    ANY,
    LISTENING,
    SOCK_DIAG,
    TCP,
    UDP,
    dump,
    internet_sockets,
    read_internet,
)

DONE = struct.pack("=IHHII", 20, 3, 2, 1, 0) + bytes(4)


class BindResponder:
    """Stands for the socket: gives out datagrams that were written before."""

    def __init__(self, *datagrams: bytes) -> None:
        self.datagrams = list(datagrams)

    def send(self, data: bytes) -> None:
        self.sent = data

    def recv(self, size: int) -> bytes:
        return self.datagrams.pop(0)


@pytest.fixture
def diag() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG) as sock:
        sock.settimeout(20)
        yield sock


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "::", "0.0.0.0"])
def test_a_listener_is_listed_with_its_address_and_inode(diag: socket.socket, host: str) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as server, socket.socket() as idle:
        server.bind((host, 0))
        server.listen()
        idle.bind(("127.0.0.1", 0))
        found = {inode: (address, port) for address, port, inode in internet_sockets(diag, TCP, LISTENING)}
        assert found[str(os.fstat(server.fileno()).st_ino)] == server.getsockname()[:2]
        assert str(os.fstat(idle.fileno()).st_ino) not in found


def test_datagram_sockets_are_listed_too(diag: socket.socket) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        assert sock.getsockname() in [(address, port) for address, port, _ in internet_sockets(diag, UDP, ANY)]


def test_pyroute2_reads_the_same(diag: socket.socket) -> None:
    from pyroute2 import DiagSocket  # type: ignore[attr-defined]

    with socket.create_server(("127.0.0.1", 0)) as server, DiagSocket() as oracle:
        oracle.bind()
        rows = oracle.get_sock_stats(family=socket.AF_INET, states=LISTENING)
        theirs = {(row["idiag_src"], row["idiag_sport"], str(row["idiag_inode"])) for row in rows}
        ours = set(internet_sockets(diag, TCP, LISTENING))
        mine = (*server.getsockname(), str(os.fstat(server.fileno()).st_ino))
        assert mine in ours & theirs


def test_a_refused_question_is_an_error(diag: socket.socket) -> None:
    with pytest.raises(OSError, match="refuses"):
        list(dump(diag, socket_diag.INET_REQUEST.pack(77, TCP, LISTENING)))


def test_the_last_answer_ends_the_reading() -> None:
    body = b"x" * 8
    first = struct.pack("=IHHII", 24, 20, 2, 1, 0) + body
    assert list(dump(BindResponder(first, first + DONE, b"never"), b"?")) == [body, body]  # type: ignore[arg-type]


@given(st.binary(max_size=200))
def test_no_answer_makes_the_reader_run_for_ever(data: bytes) -> None:
    sock = BindResponder(data, DONE)
    try:
        found = list(dump(sock, b"?"))  # type: ignore[arg-type]
    except OSError:
        return
    assert len(found) <= len(data)


@given(st.binary(max_size=100))
def test_an_answer_is_an_address_or_an_error(data: bytes) -> None:
    try:
        address, port, inode = read_internet(data)
    except (ValueError, OSError):
        return
    assert socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
    assert 0 <= port <= 65535
    assert inode.isdigit()


def test_the_hosts_listeners_are_those_of_its_loopback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as near, socket.create_server(("127.0.0.2", 0)) as other:
        found = socket_diag.host_listeners()
        assert near.getsockname()[1] in found
        assert other.getsockname()[1] not in found
    assert near.fileno() < 0
