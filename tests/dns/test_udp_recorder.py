"""Other UDP is recorded by where it wanted to go, folded by the second, and never answered."""

from __future__ import annotations

import _socket
import socket
from typing import Any

import pytest
from netsandbox_dns.udp_recorder import UdpRecorder, _destination

from netsandbox.audit import folding
from netsandbox.audit.folding import MAX_KINDS
from tests.rig.waiting import turn_until


class Book:
    def __init__(self) -> None:
        self.written: list[tuple[Any, ...]] = []

    def __call__(self, destination: tuple[str, int], count: int, size: int) -> bool:
        self.written.append((*destination, size, count))
        return True


@pytest.mark.attack(174)
@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.7"), (socket.AF_INET6, "::1")])
def test_every_datagram_is_in_a_record_and_none_is_answered(loop: Any, family: int, address: str) -> None:
    sock = _socket.socket(family, _socket.SOCK_DGRAM)
    sock.bind(("0.0.0.0" if family == socket.AF_INET else "::", 0))
    port = sock.getsockname()[1]
    book = Book()
    recorder = UdpRecorder(loop, sock, book)
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.bind((address, 0))
        for _ in range(3):
            client.sendto(b"12345", (address, port))
        recorder._ready(1)
        assert book.written == [(address, port, 5, 1)]
        recorder.flush()
        recorder.flush()
        assert book.written[1:] == [(address, port, 10, 2)]
        client.settimeout(0.05)
        with pytest.raises(TimeoutError):
            client.recv(10)
    recorder.close()
    recorder.close()


@pytest.mark.attack(197)
def test_destinations_are_bounded(loop: Any) -> None:
    sock = _socket.socket(socket.AF_INET, _socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))
    book = Book()
    recorder = UdpRecorder(loop, sock, book)
    for i in range(MAX_KINDS + 50):
        for _ in range(2):
            recorder._folding.count(("192.0.2.1", i), 1, 1)
        assert len(recorder._folding._open) <= MAX_KINDS
    recorder.close()
    assert sum(fields[3] for fields in book.written) == 2 * (MAX_KINDS + 50)


def test_a_timer_writes_what_was_folded(loop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "WINDOW", 0.05)
    sock = _socket.socket(socket.AF_INET, _socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))
    book = Book()
    recorder = UdpRecorder(loop, sock, book)
    for _ in range(2):
        recorder._folding.count(("192.0.2.1", 443), 1, 100)
    turn_until(loop, lambda: not recorder._folding._open)
    assert [fields[2:] for fields in book.written] == [(100, 1), (100, 1)]
    recorder.close()


def test_without_a_destination_it_is_still_recorded() -> None:
    assert _destination([]) == ("unknown", 0)
    assert _destination([(0, 20, b"\2\0")]) == ("unknown", 0)
