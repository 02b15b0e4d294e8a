"""The interfaces that this component needs from the launcher and from the compiled port map.

This component imports neither the launcher nor the other components; it gets the sockets made inside the session, and
the C definitions of the map, as arguments. Every implementation keeps these rules:

1. `done` is called exactly once, now or later, on the loop's thread.
2. A socket that is handed over belongs to the receiver, which closes it in every case.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable, Iterable
    from typing import Any, Protocol
else:
    Protocol = object


class Closeable(Protocol):
    def close(self) -> None: ...


class Dial(Closeable, Protocol):
    """One attempt to connect, which reports its result once it was started."""

    def start(self) -> None: ...


class Inside(Protocol):
    """Makes sockets in the session's own network."""

    def take(self, family: int, done: Callable[[_socket.socket | None], None]) -> None:
        """Make a non-blocking TCP socket of this family; None if the session cannot make one."""


class InsideSockets(Inside, Closeable, Protocol):
    """An `Inside` that can be closed."""


class SocketTable(Closeable, Protocol):
    """The sockets of the session's own network."""

    def listening(self) -> Iterable[tuple[str, int, str]]:
        """Address, port and inode of each listening socket."""

    def ports_in_use(self, *, bound: bool) -> set[int]:
        """The ports that TCP listens on or UDP uses; with *bound*, also the ports to which TCP sockets are bound."""


class Native(Protocol):
    """The cffi module of interpose/src: the layout of the port map, and stores in an order that readers can rely on."""

    @property
    def ffi(self) -> Any: ...

    @property
    def lib(self) -> Any: ...
