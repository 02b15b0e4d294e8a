"""A Mac whose programs connect elsewhere: what the emulated library does with their own sockets, step by step."""

from __future__ import annotations

import struct

from tests.rig.darwin import DOOR_FD, ENDPOINTS, MESSAGE, Mac
from tests.rig.mach_o import Answers

EPERM, EINTR, EBADF, EINVAL, EPIPE, EPROTOTYPE, EAFNOSUPPORT = 1, 4, 9, 22, 32, 41, 47
ENETUNREACH, EISCONN, ETIMEDOUT, ECONNREFUSED = 51, 56, 60, 61
EALREADY = 37
F_GETFL, F_SETFL, O_NONBLOCK, O_RDWR = 3, 4, 4, 2
SHUT_RDWR = 2
PROGRAM_FD = 5
PART = struct.Struct("<QQ")  # struct iovec


class MacWithDoors(Mac):
    """`kernel` has also what is sent and shut down. The program's socket blocks unless `flags` says otherwise."""

    def __init__(self, library: bytes, port_map: bytes | None) -> None:
        self.flags = O_RDWR
        self.connect_errors: list[int] = []  # one a call of connect; 0 and beyond: it succeeds
        self.send_errors: list[int] = []
        self.never_ready = False
        self.blocked_while: list[tuple[str, bool]] = []  # each call on the program's socket, and whether it blocked
        super().__init__(library, port_map)

    def connectx(self, name: bytes, *parts: bytes, source: int = 4) -> tuple[int, int, int]:
        """The result, how many bytes it says were sent, and the connection's number."""
        place = self.machine.put(name)
        ends = self.machine.put(ENDPOINTS.pack(source, self.machine.put(b"source"), 16, place, len(name)))
        data = self.machine.put(b"".join(PART.pack(self.machine.put(part), len(part)) for part in parts))
        sent, number = self.machine.put(b"\xee" * 8), self.machine.put(b"\xee" * 4)
        arguments = (PROGRAM_FD, ends, 0, 3, data if parts else 0, len(parts), sent, number)
        result = self.machine.call("connectx", *arguments)
        return result, self.machine.word(sent), struct.unpack("<I", self.machine.read(number, 4))[0]

    def _took(self, call: str, fd: int, data: bytes) -> None:
        self.kernel.append((call, fd, data))
        if fd == PROGRAM_FD:
            self.blocked_while.append((call, not self.flags & O_NONBLOCK))

    def _connect(self, fd: int, place: int, length: int) -> int:
        if fd == DOOR_FD:
            return super()._connect(fd, place, length)
        self._took("connect", fd, self.machine.read(place, length))
        error = self.connect_errors.pop(0) if self.connect_errors else 0
        return self._fail(error) if error else 0

    def _send(self, fd: int, data: int, size: int, flags: int) -> int:
        if fd == DOOR_FD:
            return super()._send(fd, data, size, flags)
        assert (flags, self.quiet.get(fd)) == (0, 1), "no SIGPIPE"
        error = self.send_errors.pop(0) if self.send_errors else 0
        if error:
            return self._fail(error)
        self._took("send", fd, self.machine.read(data, size))
        return size

    def _sendmsg(self, fd: int, message: int, flags: int) -> int:
        place, length, parts, count, *_ = MESSAGE.unpack(self.machine.read(message, MESSAGE.size))
        if place:
            return super()._sendmsg(fd, message, flags)
        assert (length, flags, self.quiet.get(fd)) == (0, 0, 1), "no SIGPIPE"
        error = self.send_errors.pop(0) if self.send_errors else 0
        if error:
            return self._fail(error)
        pairs = [PART.unpack(self.machine.read(parts + PART.size * number, PART.size)) for number in range(count)]
        data = b"".join(self.machine.read(*pair) for pair in pairs)
        self._took("sendmsg", fd, data)
        return len(data)

    def _poll(self, place: int, count: int, patience: int) -> int:
        if place and self.never_ready:
            assert 0 < patience <= 1000
            return 0
        return super()._poll(place, count, patience)

    def _fcntl(self, fd: int, command: int, value: int) -> int:
        if fd != PROGRAM_FD:
            return 0
        if command == F_GETFL:
            return self.flags
        assert command == F_SETFL
        self.flags = value
        return 0

    def _shutdown(self, fd: int, how: int) -> int:
        self.kernel.append(("shutdown", fd, bytes([how])))
        return 0

    def _answers(self) -> Answers:
        more: Answers = {"fcntl": ("iiv", self._fcntl), "shutdown": ("ii", self._shutdown)}
        return {**super()._answers(), **more}
