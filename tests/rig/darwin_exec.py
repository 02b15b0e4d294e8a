"""A Mac whose programs start others: what reaches the system's execve and posix_spawn, byte by byte."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from tests.rig.darwin import MAP_PATH, S_IFREG, Mac
from tests.rig.mach_o import Answers

OWN_LIBRARY = b"/opt/libnetsandbox_interpose.dylib"
PRELOAD = b"DYLD_INSERT_LIBRARIES=" + OWN_LIBRARY
MAP = b"NETSANDBOX_PORT_MAP=" + MAP_PATH
TARGET_FD = 50
E2BIG = 7
TARGET_FLAGS = 0x4 | 0x20000 | 0x1000000  # O_RDONLY, O_NONBLOCK, O_NOCTTY, O_CLOEXEC
SPAWN = (0x5A1, 0x5A2, 0x5A3)  # where posix_spawn writes the process, its actions and its attributes


@dataclass
class Started:
    """One call of the system's: which, of what, with which arguments and environment; None: a null pointer."""

    call: str
    path: bytes
    arguments: list[bytes] | None
    environment: list[bytes] | None
    more: tuple[int, ...] = field(default=())


class MacWithPrograms(Mac):
    """`files` has programs by path, `modes` their bits if they are not 0755; every start fails with `error`."""

    def __init__(self, library: bytes, *, injected: bool = True) -> None:
        self.files: dict[bytes, bytes] = {}
        self.modes: dict[bytes, int] = {}
        self.started: list[Started] = []
        self.error = 0
        self.longest: int | None = None  # more bytes of arguments than that are E2BIG
        self.protection = 0  # what csr_get_active_config tells; 0: System Integrity Protection is whole
        self._target = b""
        super().__init__(library, None)
        self.own_environment: list[bytes] = []
        if not injected:
            self._environment.clear()

    def vector(self, values: list[bytes] | None) -> int:
        """An argument list or an environment."""
        if values is None:
            return 0
        places = [self.machine.put(value + b"\0") for value in values]
        return self.machine.put(b"".join(struct.pack("<Q", place) for place in (*places, 0)))

    def start(self, call: str, path: bytes, arguments: list[bytes], environment: list[bytes] | None) -> int:
        """Any of the hooks; those without an environment of their own have the process's, `own_environment`."""
        place = self.machine.put(path + b"\0")
        if call == "execve":
            return self.machine.call(call, place, self.vector(arguments), self.vector(environment))
        if call == "execv":
            return self.machine.call(call, place, self.vector(arguments))
        if call in ("execl", "execle"):
            values = [self.machine.put(value + b"\0") for value in arguments]
            last = (self.vector(environment),) if call == "execle" else ()
            return self.machine.call(call, place, *values, 0, *last, named=2)
        return self.machine.call(
            call, SPAWN[0], place, SPAWN[1], SPAWN[2], self.vector(arguments), self.vector(environment)
        )

    def _strings(self, place: int) -> list[bytes] | None:
        if place == 0:
            return None
        found = []
        while text := self.machine.word(place):
            found.append(self.machine.string(text))
            place += 8
        return found

    def _execve(self, path: int, arguments: int, environment: int) -> int:
        made = Started("execve", self.machine.string(path), self._strings(arguments), self._strings(environment))
        self.started.append(made)
        return self._fail(self._verdict(made))

    def _spawned(self, call: str, path: int, arguments: int, environment: int, *more: int) -> int:
        strings = self._strings(arguments), self._strings(environment)
        made = Started(call, self.machine.string(path), *strings, more)
        self.started.append(made)
        return self._verdict(made)

    def _verdict(self, made: Started) -> int:
        size = sum(len(word) + 1 for word in made.arguments or [])
        return E2BIG if self.longest is not None and size > self.longest else self.error

    def _access(self, path: int, mode: int) -> int:
        assert mode == 1, "X_OK"
        name = self.machine.string(path)
        return 0 if name in self.files and self.modes.get(name, 0o755) & 0o111 else self._fail(2)

    def _active_config(self, place: int) -> int:
        self.machine.write(place, struct.pack("<I", self.protection))
        return 0

    def _open(self, path: int, flags: int) -> int:
        self._target = self.machine.string(path)
        if self._target == MAP_PATH:
            return super()._open(path, flags)
        assert flags == TARGET_FLAGS
        return self._opened(TARGET_FD) if self._target in self.files else self._fail(2)

    def _fstat(self, fd: int, about: int) -> int:
        assert fd == TARGET_FD
        self.machine.write(about + 4, struct.pack("<H", S_IFREG | self.modes.get(self._target, 0o755)))
        return 0

    def _read(self, fd: int, room: int, size: int) -> int:
        assert fd == TARGET_FD
        head = self.files[self._target][:size]
        self.machine.write(room, head)
        return len(head)

    def _environ(self) -> int:
        return self.machine.put(struct.pack("<Q", self.vector(self.own_environment)))

    def _answers(self) -> Answers:
        more: Answers = {
            "execve": ("ppp", self._execve),
            "posix_spawn": ("pppppp", lambda a, b, c, d, e, f: self._spawned("posix_spawn", b, e, f, a, c, d)),
            "posix_spawnp": ("pppppp", lambda a, b, c, d, e, f: self._spawned("posix_spawnp", b, e, f, a, c, d)),
            "read": ("ipp", self._read),
            "access": ("pi", self._access),
            "csr_get_active_config": ("p", self._active_config),
            "_NSGetEnviron": ("", self._environ),
        }
        return {**super()._answers(), **more}
