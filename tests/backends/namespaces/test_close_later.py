"""Whatever a copy of the command's socket does when it is closed, nobody waits for it but the reaper."""

from __future__ import annotations

import socket
import struct
import threading

import pytest

from netsandbox.backends.namespaces import close_later
from netsandbox.backends.namespaces.close_later import MAX_WAITING, CloseLater


class Slow:
    """Its end waits for a word."""

    def __init__(self, *, released: bool = False) -> None:
        self.word, self.over = threading.Event(), threading.Event()
        if released:
            self.word.set()

    def close(self) -> None:
        self.word.wait(20)
        self.over.set()


def nothing() -> None:
    """Said by nobody who waits."""


def test_closing_later_returns_at_once_and_reports_after_the_close() -> None:
    closer, slow, answered = CloseLater(), Slow(), threading.Event()
    order: list[bool] = []

    def answer() -> None:
        order.append(slow.over.is_set())
        answered.set()

    closer.queue(slow, answer)
    assert not slow.over.is_set()
    assert not answered.is_set()
    slow.word.set()
    assert answered.wait(20)
    assert order == [True]
    closer.close()


def test_one_that_fails_is_answered_and_keeps_nobody_alive() -> None:
    class Failing:
        def close(self) -> None:
            raise OSError("Input/output error")

    closer, last, answered = CloseLater(), Slow(released=True), threading.Event()
    closer.queue(Failing(), answered.set)
    closer.queue(last, nothing)
    assert last.over.wait(20)
    assert answered.is_set()
    closer.close()


def test_without_a_burial_there_is_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    monkeypatch.setattr(close_later._thread, "start_new_thread", lambda *words: started.append(words))
    closer = CloseLater()
    closer.close()
    assert started == []
    CloseLater().queue(Slow(released=True), nothing)
    assert len(started) == 1


def test_where_no_thread_can_be_had_it_is_closed_and_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(close_later._thread, "start_new_thread", fail)
    dead, answered = Slow(released=True), threading.Event()
    CloseLater().queue(dead, answered.set)
    assert dead.over.is_set()
    assert answered.is_set()


def test_what_is_waited_for_is_bounded() -> None:
    closer, stuck = CloseLater(), Slow()
    closer.queue(stuck, nothing)
    for _ in range(MAX_WAITING + 1):  # the first may be under way already
        assert not closer.full or _ >= MAX_WAITING - 1
        closer.queue(Slow(released=True), nothing)
    assert closer.full
    stuck.word.set()
    last = Slow(released=True)
    closer.queue(last, nothing)
    assert last.over.wait(20)
    assert not closer.full
    closer.close()


def test_a_connection_that_lingers_is_the_reapers_own_trouble() -> None:
    """The attack: SO_LINGER, a full buffer, and a peer that does not read."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        sock = socket.create_connection(server.getsockname())
        peer, _ = server.accept()
        sock.setblocking(False)
        try:
            while True:
                sock.send(b"x" * 65536)
        except BlockingIOError:
            pass
        sock.setblocking(True)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 600))
        closer, after = CloseLater(), Slow(released=True)
        closer.queue(sock, nothing)
        closer.queue(after, nothing)
        assert not after.over.wait(0.2)  # it waits its turn behind the connection
        peer.close()  # which this ends
        assert after.over.wait(20)
        closer.close()
