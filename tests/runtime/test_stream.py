"""One socket: in the loop exactly while it waits for something, closed exactly once, failing closed."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from netsandbox.runtime.loop import IN, OUT
from netsandbox.runtime.stream import Stream


class Notes:
    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def watch(self, fd: int, events: int, handler: Callable[[int], None]) -> None:
        self.calls.append(("watch", events))

    def rewatch(self, fd: int, events: int) -> None:
        self.calls.append(("rewatch", events))

    def unwatch(self, fd: int) -> None:
        self.calls.append(("unwatch", 0))


@pytest.fixture
def made() -> Iterator[tuple[Stream, Notes, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    notes = Notes()
    end = Stream(notes, ours, lambda events: None)  # type: ignore[arg-type]
    yield end, notes, theirs
    end.close()
    theirs.close()


def test_interest_in_nothing_is_no_registration(made: tuple[Stream, Notes, socket.socket]) -> None:
    end, notes, _ = made
    for events in (IN, IN, IN | OUT, 0, 0, IN):
        end.want(events)
    assert notes.calls == [("watch", IN), ("rewatch", IN | OUT), ("unwatch", 0), ("watch", IN)]


def test_it_leaves_the_loop_before_it_is_closed_and_only_once(made: tuple[Stream, Notes, socket.socket]) -> None:
    end, notes, _ = made
    end.want(IN)
    end.close()
    end.close()
    end.abort()
    assert notes.calls == [("watch", IN), ("unwatch", 0)]
    assert end.closed


@pytest.mark.parametrize("error", [ConnectionResetError, RuntimeError])
def test_a_handler_that_raises_closes_the_flow(
    made: tuple[Stream, Notes, socket.socket], error: type[Exception]
) -> None:
    """INV-1; a fault of ours is reported, a peer that left is not."""
    end, _, _ = made
    failed: list[int] = []

    def broken(events: int) -> None:
        raise error

    end.on_ready = broken
    end.on_failure = lambda: failed.append(1)
    if error is RuntimeError:
        with pytest.raises(RuntimeError):
            end.ready(IN)
    else:
        end.ready(IN)
    assert failed == [1]


def test_without_an_owner_a_failing_end_closes_itself(made: tuple[Stream, Notes, socket.socket]) -> None:
    end, _, _ = made

    def broken(events: int) -> None:
        raise BrokenPipeError

    end.on_ready = broken
    end.ready(IN)
    assert end.closed


def test_nothing_yet_and_the_end_are_told_apart(made: tuple[Stream, Notes, socket.socket]) -> None:
    end, _, theirs = made
    assert end.read(10) is None
    theirs.send(b"x")
    assert end.read(10) == b"x"
    theirs.close()
    assert end.read(10) == b""
