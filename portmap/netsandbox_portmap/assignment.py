"""Assigns ports of the window to the ports that programs request.

Rules: the assignment is one to one. It uses only ports of the window, never a reserved one. A port stays assigned until
it is released, so that a URL keeps working. A full window gives None and changes nothing (INV-1).
"""

from __future__ import annotations

from netsandbox_portmap.window import LAST_PORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class Assignment:
    """The pairs of one window. `is_free` is called before a port is given out, but not for an assigned port."""

    __slots__ = ("_any", "_base", "_closed", "_count", "_is_free", "_port_of", "_requested")

    def __init__(self, base: int, count: int, reserved: Iterable[int], is_free: Callable[[int], bool]) -> None:
        if not (0 < base <= LAST_PORT and 0 < count <= LAST_PORT + 1 - base):
            raise ValueError(f"there is no window of {count} ports at {base}")
        self._base = base
        self._count = count
        self._is_free = is_free
        self._closed = set(reserved)  # never given out: reserved, or refused by the host
        self._port_of: dict[int, int] = {}
        self._requested: dict[int, int] = {}
        self._any: list[int] = []  # given to programs that requested any port, oldest first

    def assign(self, requested: int) -> int | None:
        """The port for *requested*, the same each time; None if the window is full."""
        if not 0 < requested <= LAST_PORT:
            return None
        port = self._port_of.get(requested)
        if port is not None:
            return port
        port = next((port for port in self._from(self._preferred(requested)) if self._is_open(port)), None)
        if port is not None:
            self._pair(requested, port)
        return port

    def any_port(self) -> int | None:
        """A port for a program that requested port 0; the port stands for itself.

        It comes from the end of the window. Once half of the window is used, ports that are free again come first, as
        with the kernel's own ephemeral ports, so a test suite that opens hundreds of servers leaves room for named
        ports.
        """
        if 2 * len(self._any) >= self._count:
            return self._any_again() or self._any_new()
        return self._any_new() or self._any_again()

    def reassign(self, requested: int) -> int | None:
        """Another port for *requested*: the host refused the previous one, which is not given out again."""
        port = self._port_of.get(requested)
        if port is not None:
            self.release(requested)
            self._closed.add(port)
        return self.assign(requested)

    def release(self, requested: int) -> None:
        """Release the port for *requested*, which no program uses any more; it may stand for another."""
        port = self._port_of.pop(requested, None)
        if port is not None:
            del self._requested[port]
            if port in self._any:
                self._any.remove(port)

    def requested_port(self, port: int) -> int | None:
        return self._requested.get(port)

    def port_of(self, requested: int) -> int | None:
        return self._port_of.get(requested)

    @property
    def full(self) -> bool:
        """Whether every port has been given out."""
        return len(self._port_of) + len(self._closed) >= self._count

    def pairs(self) -> list[tuple[int, int]]:
        """(requested, port), in the order of assignment."""
        return list(self._port_of.items())

    def _preferred(self, requested: int) -> int:
        if 0 <= requested - self._base < self._count:
            return requested
        return self._base + requested % self._count

    def _from(self, port: int) -> Iterator[int]:
        first = port - self._base
        return (self._base + (first + step) % self._count for step in range(self._count))

    def _is_open(self, port: int) -> bool:
        return port not in self._requested and port not in self._closed and self._is_free(port)

    def _any_new(self) -> int | None:
        for port in range(self._base + self._count - 1, self._base - 1, -1):
            if port not in self._port_of and self._is_open(port):  # otherwise another port already stands for this one
                self._pair(port, port)
                self._any.append(port)
                return port
        return None

    def _any_again(self) -> int | None:
        for port in self._any:
            if self._is_free(port):
                self._any.remove(port)
                self._any.append(port)
                return port
        return None

    def _pair(self, requested: int, port: int) -> None:
        self._port_of[requested] = port
        self._requested[port] = requested
