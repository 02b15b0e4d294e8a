"""Sockets made inside on request: each wish gets one answer, and none is asked for faster than they are answered."""

from __future__ import annotations

import _socket
import errno
import os
import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.linux.helper_process import Message
from netsandbox.backends.namespaces import inside_sockets
from netsandbox.backends.namespaces.inside_sockets import InsideSockets

V4, V6 = socket.AF_INET, socket.AF_INET6
Given = list[_socket.socket | None]


class FakeHelper:
    """PID 1's part: keeps the wishes until the test has them answered."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.gone = False

    def ask_socket(self, family: int) -> None:
        if self.gone:
            raise BrokenPipeError(errno.EPIPE, "gone")
        self.asked.append(family)

    def answer(self, sockets: InsideSockets, *, number: int = 0) -> None:
        """The oldest wish."""
        family = self.asked.pop(0)
        if number:
            sockets.arrived(Message(b"N" + number.to_bytes(4, "little"), []))
        else:
            sockets.arrived(Message(b"N", [socket.socket(family).detach()]))

    def answer_all(self, sockets: InsideSockets) -> None:
        while self.asked:
            self.answer(sockets)


@pytest.fixture
def helper() -> FakeHelper:
    return FakeHelper()


@pytest.fixture
def sockets(helper: FakeHelper) -> Iterator[InsideSockets]:
    before = len(os.listdir("/proc/self/fd"))
    made = InsideSockets(helper)  # type: ignore[arg-type]
    yield made
    made.close()
    assert len(os.listdir("/proc/self/fd")) == before


def close(given: Given) -> None:
    for sock in given:
        if sock is not None:
            sock.close()


def test_who_asks_first_is_served_first_and_in_his_family(helper: FakeHelper, sockets: InsideSockets) -> None:
    order: list[str] = []
    given: Given = []

    def done(name: str, sock: _socket.socket | None) -> None:
        order.append(name)
        given.append(sock)

    sockets.take(V4, lambda sock: done("a", sock))
    sockets.take(V6, lambda sock: done("b", sock))
    sockets.take(V4, lambda sock: done("c", sock))
    assert order == []
    helper.answer_all(sockets)
    assert order.index("a") < order.index("c")
    assert sorted((name, sock.family) for name, sock in zip(order, given, strict=True) if sock is not None) == [
        ("a", V4),
        ("b", V6),
        ("c", V4),
    ]
    close(given)


def test_a_few_are_kept_ready_and_given_at_once(helper: FakeHelper, sockets: InsideSockets) -> None:
    given: Given = []
    sockets.take(V4, given.append)
    helper.answer_all(sockets)
    for _ in range(inside_sockets.READY):
        sockets.take(V4, given.append)
    assert len(given) == 1 + inside_sockets.READY
    assert len(helper.asked) == inside_sockets.READY  # as many as were taken away
    assert len({sock.fileno() for sock in given if sock is not None}) == 1 + inside_sockets.READY
    close(given)


def test_an_error_inside_is_an_answer_too(helper: FakeHelper, sockets: InsideSockets) -> None:
    """INV-1: EMFILE in PID 1 gives None to one who waits, and the next one gets his socket."""
    given: Given = []
    sockets.take(V4, given.append)
    sockets.take(V4, given.append)
    helper.answer(sockets, number=errno.EMFILE)
    assert given == [None]
    helper.answer_all(sockets)
    assert isinstance(given[1], _socket.socket)
    close(given)


def test_errors_that_nobody_waits_for_do_not_ask_again(helper: FakeHelper, sockets: InsideSockets) -> None:
    given: Given = []
    sockets.take(V4, given.append)
    for _ in range(1 + inside_sockets.READY):
        helper.answer(sockets, number=errno.EMFILE)
    assert (given, helper.asked) == ([None], [])


def test_a_socket_that_nobody_asked_for_is_closed_and_an_error(sockets: InsideSockets) -> None:
    stray = socket.socket().detach()
    with pytest.raises(OSError, match="not requested"):
        sockets.arrived(Message(b"N", [stray]))
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(stray)


def test_a_session_that_has_ended_gives_none_to_everybody(helper: FakeHelper, sockets: InsideSockets) -> None:
    given: Given = []
    sockets.take(V4, given.append)
    helper.gone = True
    sockets.take(V6, given.append)
    assert given == [None, None]
    sockets.take(V4, given.append)
    assert given == [None] * 3


def test_answers_that_come_after_the_end_are_closed_quietly(helper: FakeHelper, sockets: InsideSockets) -> None:
    """They were in the channel already; the fixture counts the descriptors."""
    given: Given = []
    sockets.take(V4, given.append)
    sockets.close()
    assert given == [None]
    helper.answer_all(sockets)
    assert given == [None]


def test_what_is_ready_is_closed_at_the_end(helper: FakeHelper, sockets: InsideSockets) -> None:
    given: Given = []
    sockets.take(V4, given.append)
    helper.answer_all(sockets)
    close(given)
    sockets.close()
    sockets.close()


def test_a_ready_socket_is_given_even_when_no_further_can_be_asked(helper: FakeHelper, sockets: InsideSockets) -> None:
    given: Given = []
    sockets.take(V4, given.append)
    helper.answer_all(sockets)
    helper.gone = True
    sockets.take(V4, given.append)
    assert given[1] is not None
    close(given)


def test_one_who_asks_again_when_served_is_served_again(helper: FakeHelper, sockets: InsideSockets) -> None:
    """As `Reach` does when the first address refuses."""
    given: Given = []

    def again(sock: _socket.socket | None) -> None:
        given.append(sock)
        sockets.take(V6, given.append)

    sockets.take(V4, again)
    helper.answer_all(sockets)
    assert [sock.family for sock in given if sock is not None] == [V4, V6]
    close(given)


def test_a_storm_is_served_without_filling_the_channel(helper: FakeHelper, sockets: InsideSockets) -> None:
    """With hundreds of unanswered wishes both ends would wait for each other for ever."""
    given: Given = []
    most = 0
    for turn in range(400):
        sockets.take(V6 if turn % 3 else V4, given.append)
        most = max(most, len(helper.asked))
    while helper.asked:
        helper.answer(sockets)
        most = max(most, len(helper.asked))
    assert len(given) == 400
    assert None not in given
    assert most <= inside_sockets.MAX_REQUESTED
    close(given)


@given(st.lists(st.sampled_from(["take4", "take6", "answer", "fail", "gone"]), max_size=60))
def test_whatever_happens_everybody_is_told_exactly_once(steps: list[str]) -> None:
    helper = FakeHelper()
    sockets = InsideSockets(helper)  # type: ignore[arg-type]
    told: list[int] = []
    given: Given = []
    takers = 0

    def take(family: int, number: int) -> None:
        def done(sock: _socket.socket | None) -> None:
            told.append(number)
            given.append(sock)
            assert sock is None or sock.family == family

        sockets.take(family, done)

    for step in steps:
        if step.startswith("take"):
            take(V4 if step == "take4" else V6, takers)
            takers += 1
        elif step == "gone":
            helper.gone = True
        elif helper.asked:
            helper.answer(sockets, number=errno.EMFILE if step == "fail" else 0)
    sockets.close()
    close(given)
    assert sorted(told) == list(range(takers))
