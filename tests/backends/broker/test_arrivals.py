"""Connections and datagrams as the broker passes them: told apart by their bytes, refused without an announcement."""

from __future__ import annotations

import _socket
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.broker import arrivals
from netsandbox.backends.broker.arrivals import ARRIVAL, DATAGRAM, MAPPED, ArrivalSocket, DatagramSocket, Peers
from tests.rig import processes
from tests.rig.native_units import Layout

IPV4 = MAPPED + bytes([203, 0, 113, 9])
IPV6 = socket.inet_pton(socket.AF_INET6, "2001:db8::9")


def test_the_bytes_are_those_of_the_c_headers(layout: Layout) -> None:
    """Each field that is unpacked is where the compiler put it."""
    arrival = layout(("rendezvous.h",), "arrival", "source", "wanted", "pid")
    assert arrival == {"source": 0, "wanted": 20, "pid": 40, "size": ARRIVAL.size}
    datagram = layout(("datagrams.h",), "datagram", "remote", "inode", "pid", "local")
    assert datagram == {"remote": 0, "inode": 24, "pid": 32, "local": 36, "size": DATAGRAM.size}
    assert layout(("place.h",), "place", "address", "port") == {"address": 0, "port": 16, "size": arrivals.PLACE.size}
    packed = ARRIVAL.pack(b"\1" * 16, 0x0202, b"\3" * 16, 0x0404, 0x05050505)
    assert [packed[at] for at in (0, 16, 20, 36, 40)] == [1, 2, 3, 4, 5]
    packed = DATAGRAM.pack(b"\1" * 16, 0x0202, 0x0303030303030303, 0x04040404, 0x0505)
    assert [packed[at] for at in (0, 16, 24, 32, 36)] == [1, 2, 3, 4, 5]


@given(st.ip_addresses(v=4))
def test_a_mapped_address_is_told_as_ipv4(address: Any) -> None:
    assert arrivals.address_text(MAPPED + address.packed) == str(address)


@given(st.binary(min_size=16, max_size=16).filter(lambda packed: not packed.startswith(MAPPED)))
def test_any_other_address_is_told_as_ipv6(packed: bytes) -> None:
    assert arrivals.address_text(packed) == socket.inet_ntop(socket.AF_INET6, packed)


@given(st.sampled_from([IPV4, IPV6]), st.integers(0, 65535))
def test_a_destination_is_what_the_kernel_would_tell(address: bytes, port: int) -> None:
    level, kind, data = arrivals._destination(address, port)
    assert data[2:4] == port.to_bytes(2, "big")
    if address == IPV4:
        assert (level, kind, data[:2], data[4:8], len(data)) == (0, 20, b"\2\0", IPV4[12:], 16)
    else:
        assert (level, kind, data[:2], data[8:24], len(data)) == (41, 74, b"\x0a\0", IPV6, 28)


class Scene:
    """Both ends of a door, and the peers of the session."""

    def __init__(self) -> None:
        self.peers = Peers()
        self.near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.door = ArrivalSocket(far.detach(), self.peers, 8080)

    def announce(self, data: bytes, *descriptors: int) -> None:
        socket.send_fds(self.near, [data], descriptors)


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.near.close()
    made.door.close()


def arrival(port: int = 4000, pid: int = 0) -> bytes:
    source = MAPPED + socket.inet_aton("127.1.2.3")
    return ARRIVAL.pack(source, port, IPV6, 443, pid or os.getpid())


def test_a_connection_comes_with_its_destination_and_its_process(scene: Scene) -> None:
    with socket.socket() as passed:
        scene.announce(arrival(), passed.fileno())
        descriptor, peer = scene.door._accept()
        assert os.fstat(descriptor).st_ino == os.fstat(passed.fileno()).st_ino
    os.close(descriptor)
    assert peer == ("127.1.2.3", 4000)
    assert scene.peers.attribution(peer) == (os.getpid(), os.readlink("/proc/self/exe"))
    assert scene.door.getsockname() == ("127.0.0.1", 8080)
    assert scene.door.family == socket.AF_INET


@pytest.mark.parametrize("cut", [0, 1, ARRIVAL.size - 1])
def test_a_message_that_is_not_whole_is_no_connection(scene: Scene, cut: int) -> None:
    """And the descriptor that came with it is closed."""
    with socket.socket() as passed:
        before = processes.own_descriptors()
        scene.announce(arrival()[:cut] or b"", passed.fileno())
        with pytest.raises(OSError, match="no connection was passed"):
            scene.door._accept()
        assert processes.own_descriptors() == before
    assert scene.peers.attribution(("127.1.2.3", 4000)) is None


def test_a_message_without_a_descriptor_is_no_connection(scene: Scene) -> None:
    scene.announce(arrival())
    with pytest.raises(OSError, match="no connection was passed"):
        scene.door._accept()
    assert scene.peers.attribution(("127.1.2.3", 4000)) is None


def test_the_end_of_the_broker_is_no_connection(scene: Scene) -> None:
    scene.near.close()
    with pytest.raises(OSError, match="no connection was passed"):
        scene.door._accept()


class Connected:
    def __init__(self, name: tuple[str, int]) -> None:
        self._name = name

    def getpeername(self) -> tuple[str, int]:
        return self._name


def test_a_destination_is_told_once_and_never_for_a_stranger() -> None:
    peers = Peers()
    peers.connected(("127.1.2.3", 4000), ("203.0.113.9", 443), 7)
    stranger: Any = Connected(("127.1.2.3", 4001))
    known: Any = Connected(("127.1.2.3", 4000))
    with pytest.raises(OSError, match="did not announce"):
        peers.destination(stranger)
    assert peers.destination(known) == ("203.0.113.9", 443)
    with pytest.raises(OSError, match="did not announce"):
        peers.destination(known)


def test_a_process_that_ended_or_was_never_seen_is_nobody() -> None:
    peers = Peers()
    assert peers.attribution(("127.1.2.3", 1)) is None
    peers.seen("tcp", ("127.1.2.3", 1), 2**22 + 1)
    assert peers.attribution(("127.1.2.3", 1)) is None
    peers.seen("udp", ("127.1.2.3", 1), os.getpid())
    assert peers.attribution(("127.1.2.3", 1)) is None
    assert peers.attribution(("127.1.2.3", 1), "udp") is not None


def test_as_many_peers_are_remembered_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "MAX_KNOWN", 3)
    peers = Peers()
    for port in range(10):
        peers.seen("tcp", ("127.1.2.3", port), os.getpid())
    known = [port for port in range(10) if peers.attribution(("127.1.2.3", port))]
    assert known == [7, 8, 9]


@pytest.fixture
def datagrams() -> Iterator[tuple[socket.socket, DatagramSocket, Peers]]:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    peers = Peers()
    with near:
        door = DatagramSocket(far.detach(), peers)
        yield near, door, peers
        door.close()


def test_a_datagram_is_answered_where_it_came_from(datagrams: Any) -> None:
    near, door, peers = datagrams
    header = DATAGRAM.pack(IPV4, 53, 1234, os.getpid(), 40000)
    near.send(header + b"query")
    data, ancillary, flags, source = door.recvmsg(4096, 256)
    assert (data, flags, source[:2]) == (b"query", 0, ("127.0.0.1", 40000))
    assert ancillary == [arrivals._destination(IPV4, 53)]
    assert peers.attribution(source[:2], "udp") is not None
    assert door.sendmsg([b"re", b"ply"], [], 0, source) == len(header) + 5
    assert near.recv(4096) == header + b"reply"


@given(data=st.binary(max_size=DATAGRAM.size - 1))
def test_a_message_without_a_header_is_no_datagram(data: bytes) -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with near:
        door = DatagramSocket(far.detach(), Peers())
        near.send(data)
        with pytest.raises(BlockingIOError):
            door.recvmsg(4096)
        door.close()


def test_a_datagram_that_is_longer_than_asked_for_is_cut(datagrams: Any) -> None:
    near, door, _ = datagrams
    near.send(DATAGRAM.pack(IPV6, 53, 1, 1, 1) + b"x" * 100)
    assert door.recvmsg(10)[0] == b"x" * 10


def test_options_of_doors_change_nothing(datagrams: Any, scene: Scene) -> None:
    for door in (datagrams[1], scene.door):
        door.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    scene.door.listen(5)
    assert datagrams[1].family == socket.AF_INET
