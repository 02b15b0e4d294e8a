"""The loop of a Mac: what kqueue says, in the words of epoll. Where there is none, over a kqueue made of poll(2)."""

from __future__ import annotations

import os
import select
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox import kqueue_loop
from netsandbox.kqueue_loop import (
    ADD,
    AT_END,
    DELETE,
    ERROR,
    FAILED,
    HANG_UP,
    READ,
    WRITE,
    KqueueLoop,
    KqueuePoll,
    changes,
    merged,
    translate,
)
from netsandbox.loop import IN, OUT, Loop

MASKS = st.sampled_from([0, IN, OUT, IN | OUT])


class Event:
    def __init__(self, ident: int, filter: int, flags: int = 0, fflags: int = 0) -> None:
        self.ident = ident
        self.filter = filter
        self.flags = flags
        self.fflags = fflags


class PolledQueue:
    """kqueue(2) as far as the loop uses it: a filter for each direction, reported apart, level-triggered."""

    def __init__(self) -> None:
        self.filters: set[tuple[int, int]] = set()
        self.closed = False

    def control(self, told: Iterable[Event] | None, most: int, timeout: float | None = None) -> list[Event]:
        for change in told or ():
            key = (change.ident, change.filter)
            if change.flags & DELETE:
                if key not in self.filters:
                    raise FileNotFoundError
                self.filters.discard(key)
            else:
                os.fstat(change.ident)
                self.filters.add(key)
        return self._wait(timeout)[:most] if most else []

    def _wait(self, timeout: float | None) -> list[Event]:
        poll = select.poll()
        for fd in {fd for fd, _ in self.filters}:
            masks = {READ: select.POLLIN, WRITE: select.POLLOUT}
            poll.register(fd, sum(masks[name] for ident, name in self.filters if ident == fd))
        found = []
        for fd, mask in poll.poll(None if timeout is None else timeout * 1000):
            gone = AT_END if mask & select.POLLHUP else 0
            if (fd, READ) in self.filters and mask & (select.POLLIN | select.POLLHUP | select.POLLERR):
                found.append(Event(fd, READ, gone))
            if (fd, WRITE) in self.filters and mask & (select.POLLOUT | select.POLLHUP | select.POLLERR):
                found.append(Event(fd, WRITE, gone))
        return found

    def close(self) -> None:
        self.closed = True


class PolledLoop(Loop):
    def _open_poll(self) -> Any:
        return KqueuePoll(PolledQueue(), Event)


Make = Callable[..., Loop]
ON_A_MAC = pytest.mark.skipif(sys.platform != "darwin", reason="kqueue is a Mac's")


@pytest.fixture(params=["polled", pytest.param("kqueue", marks=[pytest.mark.macos, ON_A_MAC])])
def make(request: pytest.FixtureRequest) -> Make:
    return PolledLoop if request.param == "polled" else KqueueLoop


@pytest.fixture
def loop(make: Make) -> Iterator[Loop]:
    made = make()
    yield made
    made.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair()
    with left, right:
        yield left, right


Pair = tuple[socket.socket, socket.socket]


@given(before=MASKS, after=MASKS)
def test_the_kernel_is_told_what_changes_and_nothing_else(before: int, after: int) -> None:
    filters = {name for event, name in ((IN, READ), (OUT, WRITE)) if before & event}
    for fd, name, flags in changes(7, before, after):
        assert fd == 7
        assert (name in filters) == (flags == DELETE)
        filters ^= {name}
    assert filters == {name for event, name in ((IN, READ), (OUT, WRITE)) if after & event}


@pytest.mark.parametrize(
    ("event", "mask"),
    [
        ((READ, 0, 0), IN),
        ((READ, AT_END, 0), IN),
        ((READ, AT_END, 54), IN),
        ((WRITE, 0, 0), OUT),
        ((WRITE, AT_END, 0), OUT | HANG_UP),
        ((WRITE, AT_END, 54), OUT | HANG_UP | ERROR),
        ((READ, FAILED, 0), ERROR),
    ],
)
def test_each_event_as_epoll_would_say_it(event: tuple[int, int, int], mask: int) -> None:
    assert translate(*event) == mask


def test_both_directions_of_a_descriptor_are_one_event() -> None:
    events = [Event(5, WRITE), Event(4, READ), Event(5, READ)]
    assert merged(events) == [(5, OUT | IN), (4, IN)]


@pytest.mark.skipif(sys.platform != "linux", reason="epoll is Linux'")
def test_the_numbers_are_those_of_epoll() -> None:
    assert (IN, OUT, ERROR, HANG_UP) == (select.EPOLLIN, select.EPOLLOUT, select.EPOLLERR, select.EPOLLHUP)


@pytest.mark.macos
@ON_A_MAC
def test_the_numbers_are_those_of_kqueue() -> None:
    module: Any = select
    assert (READ, WRITE) == (module.KQ_FILTER_READ, module.KQ_FILTER_WRITE)
    assert (ADD, DELETE, FAILED, AT_END) == (
        module.KQ_EV_ADD,
        module.KQ_EV_DELETE,
        module.KQ_EV_ERROR,
        module.KQ_EV_EOF,
    )


def test_a_handler_is_called_as_long_as_there_is_something_to_read(loop: Loop, pair: Pair) -> None:
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


def test_timers_fire_in_order_while_nothing_is_watched(loop: Loop) -> None:
    fired: list[str] = []
    loop.call_later(0.02, lambda: fired.append("late"))
    loop.call_later(0.0, lambda: fired.append("first"))
    loop.call_later(0.03, loop.stop)
    loop.run()
    assert fired == ["first", "late"]


def test_closing_a_descriptor_before_unwatching_it_is_harmless(loop: Loop) -> None:
    reader, writer = os.pipe()
    loop.watch(reader, IN, lambda events: None)
    os.close(reader)
    loop.unwatch(reader)
    os.close(writer)


def test_a_number_that_was_closed_unsaid_can_be_watched_again(loop: Loop, pair: Pair) -> None:
    """As with epoll, which forgets what is closed."""
    left, right = pair
    number = os.dup(left.fileno())
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
    assert seen == [IN]


def test_a_handler_that_raises_is_reported_once_and_its_descriptor_is_watched_no_longer(make: Make, pair: Pair) -> None:
    """INV-1."""
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


def test_what_is_not_watched_cannot_be_changed() -> None:
    poll = KqueuePoll(PolledQueue(), Event)
    with pytest.raises(FileNotFoundError):
        poll.modify(5, IN)
    with pytest.raises(FileNotFoundError):
        poll.unregister(5)


@pytest.mark.parametrize(("given", "asked"), [(-1, None), (None, None), (0.0, 0.0), (1.5, 1.5)])
def test_patience_is_handed_on(given: float | None, asked: float | None) -> None:
    class Patient(PolledQueue):
        def control(self, told: Any, most: int, timeout: float | None = None) -> list[Event]:
            waited.append(timeout)
            return []

    waited: list[float | None] = []
    KqueuePoll(Patient(), Event).poll(given, 8)
    assert waited == [asked]


def test_the_mac_loop_asks_for_a_kqueue(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[PolledQueue] = []

    def kqueue() -> PolledQueue:
        made.append(PolledQueue())
        return made[-1]

    monkeypatch.setattr(kqueue_loop.select, "kqueue", kqueue, raising=False)
    monkeypatch.setattr(kqueue_loop.select, "kevent", Event, raising=False)
    KqueueLoop().close()
    assert made[0].closed
