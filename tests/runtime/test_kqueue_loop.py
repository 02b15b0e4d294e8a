"""The loop of a Mac: what kqueue says, in the words of epoll. tests/runtime/test_loop.py runs it."""

from __future__ import annotations

import select
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.runtime import kqueue_loop
from netsandbox.runtime.kqueue_loop import (
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
from netsandbox.runtime.listener import EXCLUSIVE
from netsandbox.runtime.loop import IN, OUT
from tests.rig.polled_queue import Event, PolledQueue

MASKS = st.sampled_from([0, IN, OUT, IN | OUT])
ON_A_MAC = pytest.mark.skipif(sys.platform != "darwin", reason="kqueue is a Mac's")


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


def test_what_is_not_watched_cannot_be_changed() -> None:
    poll = KqueuePoll(PolledQueue(), Event)
    with pytest.raises(FileNotFoundError):
        poll.modify(5, IN)
    with pytest.raises(FileNotFoundError):
        poll.unregister(5)


@pytest.mark.parametrize(("given", "asked"), [(-1, None), (None, None), (0.0, 0.0), (1.5, 1.5)])
def test_patience_is_handed_on(given: float | None, asked: float | None) -> None:
    class Patient(PolledQueue):
        def control(self, told: Any, most: int, timeout: float | None = None, /) -> list[Any]:
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


def test_a_shared_listener_waits_as_any_other() -> None:
    """kqueue has no flag to wake one process alone."""
    assert changes(7, 0, IN | EXCLUSIVE) == changes(7, 0, IN)
