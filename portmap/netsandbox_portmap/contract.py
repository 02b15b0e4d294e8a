"""What the ports of a session ask of the launcher, and of the compiled port map.

This component imports neither the launcher nor the other components: loop, sockets made inside the session, relays and
the C definitions of the map are handed in. Rules kept by whoever implements these:

1. A `done` is called exactly once, now or later, on the loop's thread.
2. A socket that is handed over belongs to the receiver, who closes it, whatever happens.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable
    from typing import Any, Protocol
else:
    Protocol = object

# The reasons of the launcher's closed list that this component itself gives (INV-11).
LOOPBACK = "loopback"
WINDOW_FULL = "window-full"
PORT_TAKEN = "port-taken"
REASONS = (LOOPBACK, WINDOW_FULL, PORT_TAKEN)


class Timer(Protocol):
    def cancel(self) -> None: ...


class Loop(Protocol):
    """The launcher's event loop: level-triggered epoll plus timers, all callbacks on one thread."""

    def watch(self, fd: int, events: int, handler: Callable[[int], None]) -> None:
        """Call handler(events) whenever fd is ready for one of *events* (EPOLLIN, EPOLLOUT; HUP and ERR always)."""

    def rewatch(self, fd: int, events: int) -> None: ...

    def unwatch(self, fd: int) -> None: ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer: ...

    def now(self) -> float:
        """Monotonic seconds."""


class Closeable(Protocol):
    def close(self) -> None: ...


class Inside(Protocol):
    """Makes sockets in the session's own network."""

    def take(self, family: int, done: Callable[[_socket.socket | None], None]) -> None:
        """A non-blocking TCP socket of this family; None when the session can give none."""


class Splice(Protocol):
    """Relays between two connected sockets, which it owns from now on."""

    def __call__(
        self,
        client: _socket.socket,
        server: _socket.socket,
        held: bytes,
        done: Callable[[int, int], None],
    ) -> Closeable:
        """Relay both ways until both have ended, *held* going to the server first; then done(bytes up, bytes down).

        `close` of the result ends the relay early; `done` is called then too.
        """


class Native(Protocol):
    """The cffi module of interpose/src: the layout of the port map, and the stores that readers can rely on."""

    @property
    def ffi(self) -> Any: ...

    @property
    def lib(self) -> Any: ...
