"""What the ports of a session ask of the launcher, and of the compiled port map.

This component imports neither the launcher nor the other components: sockets made inside the session and the C
definitions of the map are handed in. Rules kept by whoever implements these:

1. A `done` is called exactly once, now or later, on the loop's thread.
2. A socket that is handed over belongs to the receiver, who closes it, whatever happens.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable, Iterable
    from typing import Any, Protocol
else:
    Protocol = object

# The reasons of the launcher's closed list that this component itself gives (INV-11).
LOOPBACK = "loopback"
WINDOW_FULL = "window-full"
PORT_TAKEN = "port-taken"
REASONS = (LOOPBACK, WINDOW_FULL, PORT_TAKEN)


class Closeable(Protocol):
    def close(self) -> None: ...


class Inside(Protocol):
    """Makes sockets in the session's own network."""

    def take(self, family: int, done: Callable[[_socket.socket | None], None]) -> None:
        """A non-blocking TCP socket of this family; None when the session can give none."""


class InsideSockets(Inside, Closeable, Protocol):
    """The same, until it is closed."""


class SocketTable(Closeable, Protocol):
    """The sockets of the session's own network."""

    def listening(self) -> Iterable[tuple[str, int, str]]:
        """Address, port and inode of each socket that listens."""

    def ports_in_use(self, *, bound: bool) -> set[int]:
        """The ports that are listened on or used by UDP; with *bound* also those that TCP sockets are bound to."""


class Native(Protocol):
    """The cffi module of interpose/src: the layout of the port map, and the stores that readers can rely on."""

    @property
    def ffi(self) -> Any: ...

    @property
    def lib(self) -> Any: ...
