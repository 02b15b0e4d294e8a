"""The window of a session: the ports of the host that stand for its ports, and its loopback device.

Rules kept here:

1. No two held windows share a port, and no two sessions share a device, across processes and users: port N is byte N of
   the lock file, and each device 127.x.y.z is a byte after them. 127.0.0.1 is for everybody, so no session holds it.
2. A window is probed on the host only while it is held, so that sessions that start together do not see each other's
   probes.
3. Windows become smaller as sessions become more, before the pool is full (`PARTS`).
4. Anything unavailable or unknown is a `WindowError`; nothing stays held then (INV-1).
"""

from __future__ import annotations

import _socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Locks(Protocol):
        """Byte ranges of the lock file (`ranges.RangeLock`)."""

        def take(self, start: int, length: int) -> bool: ...
        def release(self, start: int, length: int) -> None: ...
        def obstacle(self, start: int, length: int) -> tuple[int, int] | None: ...


POOL = (20000, 29999)
SIZES = (100, 10, 2, 1)  # tried in order if the user chose no size
LARGE_POOL = 10_000  # ports; a large pool has a part for each size, so that 1,000 sessions find room
PARTS = ((100, 0, 50), (10, 50, 80), (2, 80, 100))  # size, and the part of the pool in percent: 50, 300, 1000 windows
MAX_WHOLE = 10  # a window of at most this size must be completely free on the host
MAX_PORTS = 4096  # the slots of a port map
FIRST_PORT, LAST_PORT = 1024, 65535
LOCALHOST_IPV4 = "127.0.0.1"
_DEVICES = 65536  # offset of the devices in the lock file


class WindowError(Exception):
    """No window, or not the chosen one. The text gives the cause and ends with what to do."""


class Window:
    """The host's ports `base` to `last`, and the address 127.x.y.z `device`."""

    __slots__ = ("base", "count", "device")

    def __init__(self, base: int, count: int, device: str) -> None:
        self.base = base
        self.count = count
        self.device = device

    @property
    def last(self) -> int:
        return self.base + self.count - 1

    @property
    def ports(self) -> range:
        return range(self.base, self.base + self.count)

    def __contains__(self, port: object) -> bool:
        return port in self.ports

    def __str__(self) -> str:
        return span(self.base, self.count)


class HeldWindow:
    """A window that no other session can have until `close`, or until this process ends."""

    __slots__ = ("_ranges", "locks", "window")

    window: Window  # set once `take_window` has returned

    def __init__(self, locks: Locks) -> None:
        self.locks = locks
        self._ranges: list[tuple[int, int]] = []

    def hold(self, start: int, length: int) -> bool:
        """Hold one more range of the lock file."""
        if not self.locks.take(start, length):
            return False
        self._ranges.append((start, length))
        return True

    def close(self) -> None:
        """Release everything. May be called again. The lock file stays open, since the caller owns it."""
        while self._ranges:
            self.locks.release(*self._ranges.pop())


def span(base: int, count: int) -> str:
    return f"{base}-{base + count - 1}"


def device_of(base: int) -> str:
    """The device of a window; unique, because the first ports of windows are."""
    return f"127.{base >> 8}.{base & 255}.1"


def check_count(count: int) -> None:
    if not 1 <= count <= MAX_PORTS:
        raise WindowError(f"a window has 1 to {MAX_PORTS} ports, not {count}; correct --listening-port-count")


def check_window(base: int, count: int) -> None:
    check_count(count)
    if base < FIRST_PORT:
        raise WindowError(
            f"port {base} is privileged, or no port at all; give --listening-base-port {FIRST_PORT} or higher"
        )
    if base + count - 1 > LAST_PORT:
        raise WindowError(
            f"a window of {count} from port {base} goes past {LAST_PORT}; "
            "lower --listening-base-port or --listening-port-count"
        )


def check_pool(first: int, last: int) -> None:
    if not FIRST_PORT <= first <= last <= LAST_PORT:
        raise WindowError(
            f"the pool {first}-{last} is no range of unprivileged ports; give one within {FIRST_PORT}-{LAST_PORT}"
        )


def check_device(text: str) -> None:
    """Accept one spelling for each address, so that the compared, bound and exported texts are equal."""
    try:
        packed = _socket.inet_pton(_socket.AF_INET, text)
    except (OSError, ValueError):  # ValueError: a NUL, or text that UTF-8 cannot encode
        packed = b""
    if packed[:1] != b"\x7f" or _socket.inet_ntoa(packed) != text:
        raise WindowError(f"{text[:64]!a} is no address in 127.0.0.0/8; give --listening-loopback one, as 127.0.0.2")
    if text in ("127.0.0.0", "127.255.255.255"):
        raise WindowError(f"{text} stands for the whole network; give --listening-loopback one address, as 127.0.0.2")


def take_window(
    locks: Locks,
    *,
    pool: tuple[int, int] = POOL,
    base: int | None = None,
    count: int | None = None,
    device: str | None = None,
    whole: bool,
) -> HeldWindow:
    """The window at *base*, or else the first free one of *pool*.

    *whole*: every port of it must be free on the host now, on *device* if given and otherwise on localhost.
    """
    check_pool(*pool)
    if device is not None:
        check_device(device)
    held = HeldWindow(locks)
    try:
        if base is None:
            held.window = _search(held, pool, count, device, whole=whole)
        else:
            held.window = _insist(held, base, SIZES[0] if count is None else count, device, whole=whole)
        _hold_named(held, device)
    except OSError as problem:
        held.close()
        raise WindowError(
            f"no window can be locked or probed ({problem.strerror}); mend that, then start the session again"
        ) from problem
    except BaseException:
        held.close()
        raise
    return held


def _search(held: HeldWindow, pool: tuple[int, int], count: int | None, device: str | None, *, whole: bool) -> Window:
    if count is not None:
        check_count(count)
    places = _places(pool) if count is None else [(count, *pool)]
    for size, first, last in places:
        for base in range(first, last - size + 2, size):
            if not _claim(held, base, size, device):
                continue
            if not (whole or size <= MAX_WHOLE) or _first_busy(base, size, device, strict=True) is None:
                return Window(base, size, device or device_of(base))
            held.close()
    raise WindowError(
        f"no window of {places[-1][0]} is free in the pool {span(pool[0], pool[1] - pool[0] + 1)}; "
        "end a session that `netsandbox ps` shows, ask for fewer ports with --listening-port-count, "
        "or for others with --listening-base-port"
    )


def _places(pool: tuple[int, int]) -> list[tuple[int, int, int]]:
    """Sizes, each with the first and the last port where it is looked for, in order."""
    first, last = pool
    length = last - first + 1
    parts = PARTS if length >= LARGE_POOL else ()
    divided = [(size, first + length * start // 100, first + length * end // 100 - 1) for size, start, end in parts]
    return [*divided, *((size, first, last) for size in SIZES)]


def _insist(held: HeldWindow, base: int, count: int, device: str | None, *, whole: bool) -> Window:
    check_window(base, count)
    if not _claim(held, base, count, device):
        raise WindowError(
            f"another session has {_taken(held, base, count)}, so {span(base, count)} cannot be had; "
            "give another --listening-base-port, or see `netsandbox ps`"
        )
    busy = _first_busy(base, count, device, strict=False) if whole else None
    if busy is not None:
        raise WindowError(
            f"port {busy} of {span(base, count)} is in use on this host; "
            "stop the program that has it, or give another --listening-base-port"
        )
    return Window(base, count, device or device_of(base))


def _hold_named(held: HeldWindow, device: str | None) -> None:
    if device is None or device == LOCALHOST_IPV4 or held.hold(_byte_of(device), 1):
        return
    raise WindowError(
        f"another session has the device {device}; give another --listening-loopback, or see `netsandbox ps`"
    )


def _claim(held: HeldWindow, base: int, count: int, named: str | None) -> bool:
    """Hold the ports, and their device unless one was named; another session may have named that device."""
    if not held.hold(base, count):
        return False
    if named is not None or held.hold(_byte_of(device_of(base)), 1):
        return True
    held.close()
    return False


def _taken(held: HeldWindow, base: int, count: int) -> str:
    found = held.locks.obstacle(base, count)
    if found is None:  # the ports are free, so the device is taken
        return f"the device {device_of(base)}"
    first, size = found
    last = min(first + size - 1, LAST_PORT) if size else LAST_PORT  # size 0: everything from there on
    return f"{first}-{last}"


def _byte_of(device: str) -> int:
    return _DEVICES + int.from_bytes(_socket.inet_aton(device)[1:], "big")


def _first_busy(base: int, count: int, device: str | None, *, strict: bool) -> int | None:
    """The first port that a program of the host has.

    *strict* also counts ports that closed connections hold for a minute (TIME_WAIT): elsewhere in the pool is enough
    room. A user who chose these ports restarts the session again and again, and gets them.
    """
    from netsandbox_portmap.host_ports import is_free

    for port in range(base, base + count):
        if not is_free(port, device, lingering=not strict):
            return port
    return None
