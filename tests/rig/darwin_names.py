"""A Mac whose programs look names up: the system's own getaddrinfo, which reads numbers, and a resolver at the door."""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass

from tests.rig import darwin
from tests.rig.darwin import AF_INET, AF_INET6, DOOR_FD, SOCK_DGRAM, Mac
from tests.rig.mach_o import Answers

# <netdb.h>
AI_CANONNAME, AI_NUMERICHOST, AI_V4MAPPED_CFG, AI_ADDRCONFIG, AI_V4MAPPED = 2, 4, 0x200, 0x400, 0x800
EAI_AGAIN, EAI_FAIL, EAI_FAMILY, EAI_MEMORY, EAI_NONAME, EAI_SERVICE = 2, 4, 5, 6, 8, 9
HOST_NOT_FOUND, TRY_AGAIN, NO_RECOVERY, NO_DATA = 1, 2, 3, 4
INFO = struct.Struct("<iiiiI4xQQQ")  # struct addrinfo: the canonical name stands before the address
HOST = struct.Struct("<QQiiQ")  # struct hostent
ID = 0x5353


@dataclass(frozen=True)
class Asked:
    """One call of the system's function."""

    node: bytes | None
    service: bytes | None
    flags: int
    family: int


class MacWithNames(Mac):
    """`resolve(question)` gives the datagrams that come back, a list for each; `real` is what the system was asked."""

    def __init__(self, library: bytes, port_map: bytes | None) -> None:
        self.questions: list[bytes] = []
        self.resolve: Callable[[bytes], list[bytes]] = lambda question: []
        self.real: list[Asked] = []
        self.real_hosts: list[tuple[bytes, int]] = []
        self.real_errors: list[int] = []  # one a call; 0 and beyond: it succeeds
        self.freed: list[int] = []
        self.send_error = 0
        self._coming: list[bytes] = []
        super().__init__(library, port_map)

    def getaddrinfo(
        self, node: str | None, service: str | None, flags: int = 0, family: int = 0, *, hints: bool = True
    ) -> tuple[int, list[tuple[str, int, str | None]]]:
        """The result, and each entry's address, port and canonical name."""
        given = self.machine.put(INFO.pack(flags, family, 0, 0, 0, 0, 0, 0)) if hints else 0
        result = self.machine.put(bytes(8))
        error = self.machine.call("getaddrinfo", self._text(node), self._text(service), given, result)
        place = self.machine.word(result)
        assert (error == 0) is (place != 0)
        found = []
        while place:
            *_, canonical, address, following = INFO.unpack(self.machine.read(place, INFO.size))
            found.append((*self._address(address), self.machine.string(canonical).decode() if canonical else None))
            place = following
        return error, found

    def gethostbyname(self, name: str, family: int | None = None) -> tuple[str, int, list[str]] | int:
        """The name, the family and the addresses, or the number in h_errno."""
        if family is None:
            place = self.machine.call_for_pointer("gethostbyname", self._text(name))
        else:
            place = self.machine.call_for_pointer("gethostbyname2", self._text(name), family)
        if place == 0:
            return int(struct.unpack("<i", self.machine.read(self.machine.variables["_h_errno"], 4))[0])
        known, aliases, kind, length, addresses = HOST.unpack(self.machine.read(place, HOST.size))
        assert self.machine.word(aliases) == 0
        found = []
        while one := self.machine.word(addresses):
            found.append(str(ipaddress.ip_address(self.machine.read(one, length))))
            addresses += 8
        return self.machine.string(known).decode(), kind, found

    def _text(self, text: str | None) -> int:
        return 0 if text is None else self.machine.put(text.encode() + b"\0")

    def _read(self, place: int) -> bytes | None:
        return self.machine.string(place) if place else None

    def _address(self, place: int) -> tuple[str, int]:
        length, family, port = struct.unpack("!BBH", self.machine.read(place, 4))
        start, size = (4, 4) if family == AF_INET else (8, 16)
        assert length == (16 if family == AF_INET else 28)
        return str(ipaddress.ip_address(self.machine.read(place + start, size))), port

    def _getaddrinfo(self, node: int, service: int, hints: int, result: int) -> int:
        flags, family, *_ = INFO.unpack(self.machine.read(hints, INFO.size)) if hints else (0, 0)
        asked = Asked(self._read(node), self._read(service), flags, family)
        self.real.append(asked)
        if self.real_errors and (error := self.real_errors.pop(0)):
            return error
        try:
            address = ipaddress.ip_address((asked.node or b"::").decode())
        except ValueError:
            return EAI_NONAME
        name = darwin.name(str(address), int(asked.service or 0))
        kind = AF_INET if address.version == 4 else AF_INET6
        if family not in (0, kind):
            return EAI_FAMILY if family not in (AF_INET, AF_INET6) else EAI_NONAME
        made = INFO.pack(flags, kind, 1, 6, len(name), 0, self.machine.put(name), 0)
        self.machine.write(result, struct.pack("<Q", self.machine.put(made)))
        return 0

    def _freeaddrinfo(self, place: int) -> int:
        while place:
            self.freed.append(place)
            (place,) = struct.unpack("<Q", self.machine.read(place + 40, 8))
        return 0

    def _gethostbyname2(self, name: int, family: int) -> int:
        self.real_hosts.append((self.machine.string(name), family))
        return 0

    def _socket(self, family: int, kind: int, protocol: int) -> int:
        assert (family, kind, protocol) == (AF_INET, SOCK_DGRAM, 0)
        return self._opened(DOOR_FD)

    def _send(self, fd: int, data: int, size: int, flags: int) -> int:
        assert (fd, flags) == (DOOR_FD, 0)
        if self.send_error:
            return self._fail(self.send_error)
        self.questions.append(self.machine.read(data, size))
        self._coming += self.resolve(self.questions[-1])
        return size

    def _poll(self, place: int, _count: int, _patience: int) -> int:
        (events,) = struct.unpack("<h", self.machine.read(place + 4, 2))
        return int(bool(self._coming) or events == 4)  # POLLOUT

    def _recv(self, fd: int, data: int, size: int, _flags: int) -> int:
        assert fd == DOOR_FD
        message = self._coming.pop(0)[:size]
        self.machine.write(data, message)
        return len(message)

    def _entropy(self, place: int, size: int) -> int:
        assert size == 2
        self.machine.write(place, struct.pack("<H", ID))
        return 0

    def _inet_aton(self, text: int, room: int) -> int:
        try:
            self.machine.write(room, socket.inet_aton(self.machine.string(text).decode()))
        except OSError:
            return 0
        return 1

    def _inet_pton(self, family: int, text: int, room: int) -> int:
        assert family == AF_INET6
        try:
            self.machine.write(room, socket.inet_pton(socket.AF_INET6, self.machine.string(text).decode()))
        except OSError:
            return 0
        return 1

    def _inet_ntop(self, family: int, address: int, room: int, size: int) -> int:
        text = str(ipaddress.ip_address(self.machine.read(address, 4 if family == AF_INET else 16))).encode()
        assert len(text) < size
        self.machine.write(room, text + b"\0")
        return room

    def _answers(self) -> Answers:
        more: Answers = {
            "getaddrinfo": ("pppp", self._getaddrinfo),
            "freeaddrinfo": ("p", self._freeaddrinfo),
            "gethostbyname2": ("pi", self._gethostbyname2),
            "socket": ("iii", self._socket),
            "getentropy": ("pp", self._entropy),
            "inet_aton": ("pp", self._inet_aton),
            "inet_pton": ("ipp", self._inet_pton),
            "inet_ntop": ("ippi", self._inet_ntop),
            "free": ("p", lambda place: 0),
        }
        return {**super()._answers(), **more}
