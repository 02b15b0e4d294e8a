"""The event loop, over epoll and over kqueue: descriptors, timers, and what happens when a handler fails."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator

import pytest

from netsandbox.runtime.kqueue_loop import HANG_UP, KqueueLoop
from netsandbox.runtime.loop import IN, OUT, Loop
from tests.rig.polled_queue import PolledLoop

Pair = tuple[socket.socket, socket.socket]
Make = Callable[..., Loop]
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="epoll is Linux'")
ON_A_MAC = pytest.mark.skipif(sys.platform != "darwin", reason="kqueue is a Mac's")


@pytest.fixture(
    params=[
        pytest.param(Loop, id="epoll", marks=ON_LINUX),
        pytest.param(PolledLoop, id="polled"),
        pytest.param(KqueueLoop, id="kqueue", marks=[pytest.mark.macos, ON_A_MAC]),
    ]
)
def make(request: pytest.FixtureRequest) -> Make:
    """The loop of Linux, that of a Mac over a kqueue made of poll(2), and that of a Mac: one behaviour."""
    chosen: Make = request.param
    return chosen


@pytest.fixture
def loop(make: Make) -> Iterator[Loop]:
    made = make()
    yield made
    made.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    left, right = socket.socketpair()
    with left, right:
        yield left, right


def test_a_handler_is_called_as_long_as_there_is_something_to_read(loop: Loop, pair: Pair) -> None:
    """Level-triggered: what one call leaves, the next one gets."""
    left, right = pair
    heard: list[bytes] = []

    def ready(events: int) -> None:
        assert events & IN
        heard.append(left.recv(1))
        if len(heard) == 3:
            loop.stop()

    loop.watch(left.fileno(), IN, ready)
    right.send(b"abc")
    loop.run()
    assert heard == [b"a", b"b", b"c"]


def test_what_is_watched_can_be_changed_and_ended(loop: Loop, pair: Pair) -> None:
    left, _ = pair
    seen: list[int] = []

    def ready(events: int) -> None:
        seen.append(events)
        loop.unwatch(left.fileno())
        loop.unwatch(left.fileno())  # twice is once
        loop.call_later(0, loop.stop)

    loop.watch(left.fileno(), IN, ready)
    loop.rewatch(left.fileno(), OUT)
    loop.run()
    assert seen == [OUT]


def test_timers_fire_in_the_order_of_their_time_and_then_of_their_making(loop: Loop) -> None:
    fired: list[str] = []
    loop.call_later(0.02, lambda: fired.append("late"))
    loop.call_later(0.0, lambda: fired.append("first"))
    loop.call_later(0.0, lambda: fired.append("second"))
    taken_back = loop.call_later(0.0, lambda: fired.append("never"))
    loop.call_later(0.03, loop.stop)
    taken_back.cancel()
    loop.run()
    assert fired == ["first", "second", "late"]


def test_a_timer_made_by_a_timer_fires_too(loop: Loop) -> None:
    fired: list[int] = []

    def again() -> None:
        fired.append(1)
        if len(fired) == 3:
            loop.stop()
        else:
            loop.call_later(0, again)

    loop.call_later(0, again)
    loop.run()
    assert len(fired) == 3


def test_a_descriptor_closed_by_an_earlier_handler_of_the_round_is_left_alone(loop: Loop, pair: Pair) -> None:
    left, right = pair
    calls: list[str] = []

    def first(events: int) -> None:
        calls.append("one")
        for sock in (left, right):
            loop.unwatch(sock.fileno())
        loop.call_later(0, loop.stop)

    for sock in (left, right):
        loop.watch(sock.fileno(), OUT, first)
    loop.run()
    assert calls == ["one"]


def test_closing_a_descriptor_before_unwatching_it_is_harmless(loop: Loop) -> None:
    reader, writer = os.pipe()
    loop.watch(reader, IN, lambda events: None)
    os.close(reader)
    loop.unwatch(reader)
    os.close(writer)


def test_a_handler_that_raises_is_reported_once_and_its_descriptor_is_watched_no_longer(make: Make, pair: Pair) -> None:
    """INV-1: nothing more passes there, and the loop does not spin on it."""
    left, right = pair
    errors: list[BaseException] = []
    loop = make(errors.append)

    def fails(events: int) -> None:
        raise ValueError("mine")

    loop.watch(left.fileno(), IN, fails)
    right.send(b"x")
    loop.call_later(0.05, loop.stop)
    loop.run()
    loop.close()
    assert [str(error) for error in errors] == ["mine"]


def test_a_timer_that_raises_does_not_keep_the_others_from_firing(make: Make) -> None:
    errors: list[BaseException] = []
    loop = make(errors.append)

    def fails() -> None:
        raise ValueError("mine")

    loop.call_later(0, fails)
    loop.call_later(0, loop.stop)
    loop.run()
    loop.close()
    assert len(errors) == 1


def test_without_anyone_to_tell_an_error_comes_out(loop: Loop, pair: Pair) -> None:
    left, _ = pair

    def fails(events: int) -> None:
        raise ValueError("mine")

    loop.watch(left.fileno(), OUT, fails)
    with pytest.raises(ValueError, match="mine"):
        loop.run()


def test_stopping_in_the_middle_of_a_round_ends_it(loop: Loop, pair: Pair) -> None:
    calls: list[int] = []

    def stop(events: int) -> None:
        calls.append(1)
        loop.stop()

    for sock in pair:
        loop.watch(sock.fileno(), OUT, stop)
    loop.run()
    assert calls == [1]


def test_a_peer_that_left_is_told_to_a_reader(loop: Loop, pair: Pair) -> None:
    left, right = pair
    right.close()
    seen: list[bytes] = []

    def ready(events: int) -> None:
        assert events & IN
        seen.append(left.recv(1))
        loop.stop()

    loop.watch(left.fileno(), IN, ready)
    loop.run()
    assert seen == [b""]


def test_a_peer_that_left_is_told_to_a_writer(loop: Loop, pair: Pair) -> None:
    left, right = pair
    right.close()
    seen: list[int] = []

    def ready(events: int) -> None:
        seen.append(events)
        loop.stop()

    loop.watch(left.fileno(), OUT, ready)
    loop.run()
    assert seen[0] & OUT
    assert seen[0] & HANG_UP


def test_both_directions_come_in_one_call(loop: Loop, pair: Pair) -> None:
    left, right = pair
    right.send(b"x")
    seen: list[int] = []

    def ready(events: int) -> None:
        seen.append(events)
        loop.stop()

    loop.watch(left.fileno(), IN | OUT, ready)
    loop.run()
    assert seen == [IN | OUT]


def test_a_number_that_was_closed_unsaid_can_be_watched_again(loop: Loop, pair: Pair) -> None:
    """The kernel forgets what is closed."""
    left, right = pair
    number, writer = os.pipe()
    loop.watch(number, IN, lambda events: None)
    os.close(number)
    assert os.dup(left.fileno()) == number
    seen: list[int] = []

    def ready(events: int) -> None:
        seen.append(events)
        loop.unwatch(number)
        loop.stop()

    loop.watch(number, IN, ready)
    right.send(b"x")
    loop.run()
    os.close(number)
    os.close(writer)
    assert seen == [IN]
