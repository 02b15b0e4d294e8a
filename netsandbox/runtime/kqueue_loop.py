"""The event loop on macOS: `netsandbox.runtime.loop.Loop` on kqueue(2), with the event numbers of epoll(7).

kqueue has one filter for each direction and reports them separately. Here they become one mask per descriptor, so that
a handler written for epoll sees no difference: level-triggered, hang-ups always reported, and closed descriptors
forgotten by the kernel.
"""

from __future__ import annotations

import errno
import select

from netsandbox.runtime.loop import IN, OUT, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Protocol

    from netsandbox.runtime.loop import Poll

    class Event(Protocol):
        """`select.kevent`."""

        ident: int
        filter: int
        flags: int
        fflags: int

    class Queue(Protocol):
        """`select.kqueue`."""

        def control(
            self, changes: Iterable[Event] | None, most: int, timeout: float | None = None, /
        ) -> list[Event]: ...
        def close(self) -> None: ...

    MakeEvent = Callable[[int, int, int], Event]

ERROR, HANG_UP = 8, 16  # EPOLLERR, EPOLLHUP
READ, WRITE = -1, -2  # EVFILT_READ, EVFILT_WRITE
ADD, DELETE, FAILED, AT_END = 0x0001, 0x0002, 0x4000, 0x8000  # EV_ADD, EV_DELETE, EV_ERROR, EV_EOF
_FILTERS = ((IN, READ), (OUT, WRITE))


def changes(fd: int, before: int, after: int) -> list[tuple[int, int, int]]:
    """The changes for the kernel, as (fd, filter, flags), when *fd* waits for *after* instead of *before*."""
    found = []
    for event, name in _FILTERS:
        if after & event and not before & event:
            found.append((fd, name, ADD))
        elif before & event and not after & event:
            found.append((fd, name, DELETE))
    return found


def translate(filter_: int, flags: int, fflags: int) -> int:
    """One event of kqueue as epoll would report it. At the end of a stream both report that it is readable."""
    if flags & FAILED:
        return ERROR
    if filter_ == READ:
        return IN
    hung_up = HANG_UP if flags & AT_END else 0
    return OUT | hung_up | (ERROR if hung_up and fflags else 0)


def merged(events: Iterable[Event]) -> list[tuple[int, int]]:
    """One mask for each descriptor, in the order in which the kernel reported them first."""
    masks: dict[int, int] = {}
    for event in events:
        masks[event.ident] = masks.get(event.ident, 0) | translate(event.filter, event.flags, event.fflags)
    return list(masks.items())


class KqueuePoll:
    """Has the interface of `select.epoll`."""

    def __init__(self, queue: Queue, make_event: MakeEvent) -> None:
        self._queue = queue
        self._make_event = make_event
        self._wanted: dict[int, int] = {}

    def register(self, fd: int, events: int = IN | OUT, /) -> None:
        self._apply(
            changes(fd, 0, events)
        )  # also right if an earlier fd of that number was closed: the kernel forgot it
        self._wanted[fd] = events

    def modify(self, fd: int, events: int, /) -> None:
        self._apply(changes(fd, self._watched(fd), events))
        self._wanted[fd] = events

    def unregister(self, fd: int, /) -> None:
        before = self._watched(fd)
        del self._wanted[fd]  # first: a descriptor that was closed is gone from the kernel's list already
        self._apply(changes(fd, before, 0))

    def poll(self, timeout: float | None = -1, most: int = 256, /) -> list[tuple[int, int]]:
        """A negative *timeout* waits for ever, as with epoll."""
        forever = timeout is None or timeout < 0
        return merged(self._queue.control(None, most, None if forever else timeout))

    def close(self) -> None:
        self._wanted.clear()
        self._queue.close()

    def _watched(self, fd: int) -> int:
        if fd not in self._wanted:
            raise FileNotFoundError(errno.ENOENT, "the descriptor is not watched")
        return self._wanted[fd]

    def _apply(self, made: list[tuple[int, int, int]]) -> None:
        if made:
            self._queue.control([self._make_event(*change) for change in made], 0, 0)


class KqueueLoop(Loop):
    """The event loop on macOS."""

    def _open_poll(self) -> Poll:
        return KqueuePoll(
            select.kqueue(),  # type: ignore[attr-defined]  # of a Mac
            select.kevent,  # type: ignore[attr-defined]
        )
