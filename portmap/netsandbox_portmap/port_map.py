"""The port map for its only writer (INV-8); interpose/src/portmap.h defines its layout.

Rules: the file is new and ours, and every byte is written before a process maps it, so that no reader touches a missing
page (SIGBUS). Every change happens inside the seqlock and uses the stores of the C side, because a plain store from
Python guarantees no order to a reader on another core.
"""

from __future__ import annotations

import _socket
import mmap
import os

from netsandbox_portmap.window import LAST_PORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from netsandbox_portmap.contract import Native

NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class PortMap:
    """Slots of one window, shared with every process of the session."""

    __slots__ = ("_begin", "_buffer", "_end", "_ffi", "_map", "_memory", "path", "token")

    def __init__(self, native: Native, path: str, memory: mmap.mmap, token: bytes) -> None:
        self.path = path
        self.token = token
        self._ffi = native.ffi
        self._begin = native.lib.ns_map_begin
        self._end = native.lib.ns_map_end
        self._memory = memory
        self._buffer: Any = self._ffi.from_buffer(memory, require_writable=True)
        self._map: Any = self._ffi.cast("struct ns_map *", self._buffer)

    @classmethod
    def create(
        cls,
        native: Native,
        path: str,
        *,
        strategy: int,
        device: str,
        window_base: int,
        window_count: int,
        door: int,
        passing: Sequence[int],
        egress: int = 0,
        resolver: int = 0,
        token: bytes | None = None,
    ) -> PortMap:
        """*strategy* is one of NS_STRATEGY_…; *passing* ports are never rewritten; the default *token* is random."""
        _check(native.lib, strategy, window_base, window_count, door, passing)
        token = token or os.urandom(native.lib.NS_TOKEN_BYTES)
        header = native.ffi.new("struct ns_map *")
        header.magic = native.lib.NS_MAP_MAGIC
        header.version = native.lib.NS_MAP_VERSION
        header.size = native.ffi.sizeof("struct ns_map")
        header.strategy = strategy
        header.device = _loopback(device)
        header.base = window_base
        header.count = window_count
        header.door = door
        header.egress = egress
        header.resolver = resolver
        header.passing_count = len(passing)
        header.passing[0 : len(passing)] = list(passing)
        header.token = list(token)
        return cls(native, path, _new_file(path, bytes(native.ffi.buffer(header))), token)

    def set(self, port: int, requested: int) -> None:
        """Make *port*, and no other port, stand for *requested*."""
        if not 0 < requested <= LAST_PORT:
            raise ValueError(f"{requested} is no port")
        self._store(port, requested)

    def clear(self, port: int) -> None:
        self._store(port, 0)

    def close(self) -> None:
        """Unmap the memory; the file stays unchanged."""
        if self._map is None:
            return
        self._map = None
        self._ffi.release(self._buffer)  # the memory cannot be unmapped while the buffer is in use
        self._memory.close()

    def unlink(self) -> None:
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass

    def _store(self, port: int, requested: int) -> None:
        table = self._map
        if table is None:
            raise ValueError("the port map is closed")
        slot = port - table.base
        if not 0 <= slot < table.count:
            raise ValueError(f"{port} is outside the window")
        before, other = table.requested[slot], table.window[requested]
        self._begin(table)
        table.window[before] = 0  # entry 0 is always 0: no port stands for port 0
        if requested:
            if other:
                table.requested[other - table.base] = 0
            table.window[requested] = port
        table.requested[slot] = requested
        self._end(table)


def _check(lib: Any, strategy: int, base: int, count: int, door: int, passing: Sequence[int]) -> None:
    """Raise an error for values that readers would reject; cffi rejects numbers that do not fit their field."""
    if base <= 0 or not 0 < count <= min(lib.NS_MAP_SLOTS, LAST_PORT + 1 - base):
        raise ValueError(f"there is no window of {count} ports at {base}")
    if len(passing) > lib.NS_MAP_PASSING:
        raise ValueError(f"at most {lib.NS_MAP_PASSING} ports can be passed on as they are, not {len(passing)}")
    if door <= 0 or not lib.NS_STRATEGY_FAIL <= strategy <= lib.NS_STRATEGY_PORT:
        raise ValueError(f"there is no door {door}, or no strategy {strategy}")


def _loopback(device: str) -> list[int]:
    address = _socket.inet_pton(_socket.AF_INET, device)
    if address[0] != 127 and any(address):
        raise ValueError(f"{device} is no loopback address")
    return list(address)


def _new_file(path: str, content: bytes) -> mmap.mmap:
    """A file with *content*, and its mapping. After an error, there is no file."""
    fd = os.open(path, NEW_FILE, 0o600)
    try:
        done = 0
        while done < len(content):  # every byte, zeros too: a hole could not be filled on a full disk
            done += os.write(fd, content[done:])
        return mmap.mmap(fd, len(content))
    except BaseException:
        os.unlink(path)
        raise
    finally:
        os.close(fd)
