"""A stand-in for the part of macOS that the preload library calls: Darwin's numbers, its sockaddr, one file.

It records what reaches the kernel, byte by byte, and answers as it is told. The numbers are written out, since those of
the system that runs the tests are others.
"""

from __future__ import annotations

import atexit
import ipaddress
import shutil
import struct
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import macos_library
import pytest

from tests.rig import c_strings
from tests.rig.mach_o import Answers, MachO

EACCES, EAGAIN, EINPROGRESS, EADDRINUSE, EADDRNOTAVAIL = 13, 35, 36, 48, 49
ENOENT = 2
AF_INET, AF_INET6 = 2, 30
SOCK_STREAM, SOCK_DGRAM, SOCK_RAW = 1, 2, 3
SOL_SOCKET, SO_TYPE, SO_ERROR, SO_NOSIGPIPE = 0xFFFF, 0x1008, 0x1007, 0x1022
IPPROTO_IPV6, IPV6_V6ONLY = 41, 27
# O_RDONLY, O_NONBLOCK, O_NOFOLLOW, O_NOCTTY, O_CLOEXEC
MAP_FLAGS = 0x4 | 0x100 | 0x20000 | 0x1000000
S_IFREG = 0o100000
MAP_PATH, MAP_FD, DOOR_FD = b"/private/var/session/map", 40, 41
MAP_FAILED = -1
TRUNCATED = 0x10  # MSG_TRUNC, one of the flags that recvmsg gives back
CONNECTX_LAST = (0x5E27, 0x1D)  # where connectx writes what it sent and its number: on the stack of x86_64
REQUEST = struct.Struct("<IHH4sI16s")
REPLY = struct.Struct("<IiHH")
MESSAGE = struct.Struct("<QI4xQi4xQIi")  # struct msghdr
ENDPOINTS = struct.Struct("<I4xQI4xQI4x")  # sa_endpoints_t
MAGIC = 0x4E534D50


@cache
def compiled(architecture: str) -> bytes:
    """The library for one architecture, once for all tests."""
    return macos_library.compile_slice(architecture)


@cache
def _faulty_sources() -> Path:
    """One folder for every fault: the compiler's cache knows a unit by its path, so only the faulty one is compiled."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(macos_library.SOURCES, folder, dirs_exist_ok=True)
    return Path(folder)


def with_fault(unit: str, before: str, after: str) -> bytes:
    """The library from sources of which one has a fault, for arm64."""
    sources = _faulty_sources()
    text = (sources / unit).read_text()
    assert text.count(before) == 1
    (sources / unit).write_text(text.replace(before, after))
    try:
        return macos_library.compile_slice("aarch64", sources)
    finally:
        (sources / unit).write_text(text)


Fault = tuple[str, str, str, Callable[[bytes], None]]


def noticed(*faults: Fault) -> Callable[..., None]:
    """A test that a check fails where a unit's text is another: so that the checks are known to be able to."""

    @pytest.mark.parametrize(("unit", "before", "after", "check"), faults)
    def test(unit: str, before: str, after: str, check: Callable[[bytes], None]) -> None:
        faulty = with_fault(unit, before, after)
        with pytest.raises(AssertionError):
            check(faulty)

    return test


def name(address: str, port: int, length: int | None = None) -> bytes:
    """A sockaddr_in or sockaddr_in6 with its length byte, which a program may also leave wrong."""
    packed = ipaddress.ip_address(address).packed
    if len(packed) == 4:
        return struct.pack("!BBH4s8x", 16 if length is None else length, AF_INET, port, packed)
    return struct.pack("!BBHI16sI", 28 if length is None else length, AF_INET6, port, 0, packed, 0)


class Mac:
    """A process with the library in it. *port_map* is the file's content; None: there is no file."""

    def __init__(self, library: bytes, port_map: bytes | None) -> None:
        self.port_map = port_map
        self.kernel: list[tuple[str, int, bytes]] = []  # what reached it: call, descriptor, name
        self.requests: list[tuple[int, str, int, bytes]] = []  # port, address, protocol, token
        self.reply = REPLY.pack(MAGIC, EACCES, 0, 0)
        self.bind_errors: list[int] = []
        self.told = b""  # the name that getsockname, getpeername, accept and recvfrom give
        self.socket_type = SOCK_STREAM
        self.socket_error = 0  # SO_ERROR
        self.v6only = 0
        self.naps = 0
        self.quiet: dict[int, int] = {}  # SO_NOSIGPIPE by descriptor
        self.descriptors: set[int] = set()  # those that the library opened and did not close
        self.machine = MachO(library, self._answers())
        self._errno = self.machine.put(bytes(8))
        self._environment = {
            b"NETSANDBOX_PORT_MAP": self.machine.put(MAP_PATH + b"\0"),
            b"DYLD_INSERT_LIBRARIES": self.machine.put(b"/opt/libnetsandbox_interpose.dylib\0"),
        }
        self._map = self.machine.put_file(port_map) if port_map else 0

    @property
    def errno(self) -> int:
        return int(struct.unpack("<i", self.machine.read(self._errno, 4))[0])

    @errno.setter
    def errno(self, value: int) -> None:
        self.machine.write(self._errno, struct.pack("<i", value))

    def rewrite_map(self, content: bytes) -> None:
        """What a writer does to the file while the process has it in memory."""
        self.machine.write(self._map, content)

    def give(self, call: str, data: bytes, fd: int = 5) -> int:
        """bind, connect, connectx, sendto or sendmsg with a name."""
        place = self.machine.put(data)
        if call == "sendto":
            return self.machine.call(call, fd, self.machine.put(b"payload"), 7, 0, place, len(data))
        if call == "sendmsg":
            return self.machine.call(call, fd, self.machine.put(MESSAGE.pack(place, len(data), 0, 0, 0, 0, 0)), 0)
        if call == "connectx":
            ends = self.machine.put(ENDPOINTS.pack(4, 0, 0, place, len(data)))
            return self.machine.call(call, fd, ends, 0, 1, 0, 0, *CONNECTX_LAST)
        return self.machine.call(call, fd, place, len(data))

    def ask(self, call: str, told: bytes, room: int = 128, fd: int = 5) -> tuple[int, bytes, int]:
        """getsockname, getpeername, accept, recvfrom or recvmsg: the result, the room's bytes and the length."""
        self.told = told
        place, length = self.machine.put(b"\xee" * (room + 8)), self.machine.put(struct.pack("<I", room))
        if call == "recvmsg":
            message = self.machine.put(MESSAGE.pack(place, room, 0, 0, 0, 0, 0))
            length = message + 8
            result = self.machine.call(call, fd, message, 0)
            assert MESSAGE.unpack(self.machine.read(message, MESSAGE.size))[0::6] == (place, TRUNCATED)
            return self._read_room(result, place, length, room)
        data = (self.machine.put(bytes(16)), 16, 0) if call == "recvfrom" else ()
        return self._read_room(self.machine.call(call, fd, *data, place, length), place, length, room)

    def _read_room(self, result: int, place: int, length: int, room: int) -> tuple[int, bytes, int]:
        (said,) = struct.unpack("<I", self.machine.read(length, 4))
        assert self.machine.read(place + room, 8) == b"\xee" * 8, "written beyond the room"
        return result, self.machine.read(place, min(room, said)), said

    def _fail(self, error: int) -> int:
        self.errno = error
        return -1

    def _reached(self, call: str, fd: int, place: int, length: int) -> None:
        self.kernel.append((call, fd, self.machine.read(place, length)))

    def _bind(self, fd: int, place: int, length: int) -> int:
        self._reached("bind", fd, place, length)
        error = self.bind_errors.pop(0) if self.bind_errors else 0
        return self._fail(error) if error else 0

    def _connect(self, fd: int, place: int, length: int) -> int:
        self._reached("connect", fd, place, length)
        return self._fail(EINPROGRESS) if fd == DOOR_FD else 0

    def _sendto(self, fd: int, data: int, size: int, _flags: int, place: int, length: int) -> int:
        assert self.machine.read(data, size) == b"payload"
        self._reached("sendto", fd, place, length)
        return size

    def _connectx(self, fd: int, ends: int, *more: int) -> int:
        source, _, _, place, length = ENDPOINTS.unpack(self.machine.read(ends, ENDPOINTS.size))
        assert (source, more) == (4, (0, 1, 0, 0, *CONNECTX_LAST)), "everything else as the program gave it"
        self._reached("connectx", fd, place, length)
        return 0

    def _sendmsg(self, fd: int, message: int, _flags: int) -> int:
        place, length, *_ = MESSAGE.unpack(self.machine.read(message, MESSAGE.size))
        self._reached("sendmsg", fd, place, length)
        return 7

    def _recvmsg(self, _fd: int, message: int, _flags: int) -> int:
        (place,) = struct.unpack("<Q", self.machine.read(message, 8))
        self._tell(place, message + 8)
        self.machine.write(message + 44, struct.pack("<i", TRUNCATED))
        return 3

    def _listen(self, fd: int, _backlog: int) -> int:
        self.kernel.append(("listen", fd, b""))
        return 0

    def _tell(self, place: int, length: int) -> None:
        (room,) = struct.unpack("<I", self.machine.read(length, 4))
        self.machine.write(place, self.told[:room])
        self.machine.write(length, struct.pack("<I", len(self.told)))

    def _name(self, _fd: int, place: int, length: int) -> int:
        self._tell(place, length)
        return 0

    def _accept(self, _fd: int, place: int, length: int) -> int:
        self._tell(place, length)
        return 9

    def _recvfrom(self, _fd: int, _data: int, _size: int, _flags: int, place: int, length: int) -> int:
        self._tell(place, length)
        return 3

    def _getsockopt(self, fd: int, level: int, option: int, value: int, _size: int) -> int:
        known = {(SOL_SOCKET, SO_TYPE): self.socket_type, (IPPROTO_IPV6, IPV6_V6ONLY): self.v6only}
        more = {(SOL_SOCKET, SO_ERROR): self.socket_error, (SOL_SOCKET, SO_NOSIGPIPE): self.quiet.get(fd, 0)}
        self.machine.write(value, struct.pack("<i", {**known, **more}[level, option]))
        return 0

    def _setsockopt(self, fd: int, level: int, option: int, value: int, size: int) -> int:
        assert (level, option, size) == (SOL_SOCKET, SO_NOSIGPIPE, 4)
        (self.quiet[fd],) = struct.unpack("<i", self.machine.read(value, 4))
        return 0

    def _open(self, path: int, flags: int) -> int:
        assert (self.machine.string(path), flags) == (MAP_PATH, MAP_FLAGS)
        return self._fail(ENOENT) if self.port_map is None else self._opened(MAP_FD)

    def _opened(self, fd: int) -> int:
        self.descriptors.add(fd)
        return fd

    def _close(self, fd: int) -> int:
        self.descriptors.remove(fd)
        return 0

    def _fstat(self, fd: int, about: int) -> int:
        """<sys/stat.h>: st_mode at 4, st_size at 96."""
        assert (fd, self.port_map is None) == (MAP_FD, False)
        self.machine.write(about + 4, struct.pack("<H", S_IFREG | 0o400))
        self.machine.write(about + 96, struct.pack("<q", len(self.port_map or b"")))
        return 0

    def _mmap(self, _where: int, size: int, protection: int, flags: int, fd: int, offset: int) -> int:
        assert (protection, flags, fd, offset) == (1, 1, MAP_FD, 0), "only to read, and shared with the writer"
        return self._map if size <= len(self.port_map or b"") else MAP_FAILED

    def _poll(self, place: int, _count: int, _patience: int) -> int:
        self.naps += place == 0
        return int(place != 0)

    def _send(self, fd: int, data: int, size: int, _flags: int) -> int:
        assert (fd, size) == (DOOR_FD, REQUEST.size)
        magic, operation, port, address, protocol, token = REQUEST.unpack(self.machine.read(data, size))
        assert (magic, operation) == (MAGIC, 1)
        self.requests.append((port, str(ipaddress.ip_address(address)), protocol, token))
        return size

    def _recv(self, fd: int, data: int, size: int, _flags: int) -> int:
        assert fd == DOOR_FD
        self.machine.write(data, self.reply[:size])
        return min(len(self.reply), size)

    def _clock(self, _which: int, place: int) -> int:
        self.machine.write(place, struct.pack("<qq", 1000, 0))
        return 0

    def _answers(self) -> Answers:
        """By name: the arguments that are looked at, and who answers."""
        return {
            "bind": ("ipi", self._bind),
            "connect": ("ipi", self._connect),
            "sendto": ("ippipi", self._sendto),
            "getsockname": ("ipp", self._name),
            "getpeername": ("ipp", self._name),
            "accept": ("ipp", self._accept),
            "recvfrom": ("ippipp", self._recvfrom),
            "connectx": ("ipiipipp", self._connectx),
            "sendmsg": ("ipi", self._sendmsg),
            "recvmsg": ("ipi", self._recvmsg),
            "listen": ("ii", self._listen),
            "getsockopt": ("iiipp", self._getsockopt),
            "setsockopt": ("iiipi", self._setsockopt),
            "socket": ("", lambda: self._opened(DOOR_FD)),
            "fcntl": ("", lambda: 0),
            "close": ("i", self._close),
            "open": ("pi", self._open),
            "fstat": ("ip", self._fstat),
            "mmap": ("ppiiip", self._mmap),
            "munmap": ("", lambda: 0),
            "poll": ("pii", self._poll),
            "send": ("ippi", self._send),
            "recv": ("ippi", self._recv),
            "clock_gettime": ("ip", self._clock),
            "pthread_setcancelstate": ("", lambda: 0),
            "getenv": ("p", lambda place: self._environment.get(self.machine.string(place), 0)),
            "__error": ("", lambda: self._errno),
            **c_strings.answers(lambda: self.machine),
        }
