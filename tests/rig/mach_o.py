"""Runs single functions of a macOS library on an emulated processor, without a Mac.

The library is laid out as dyld would do it: segments at a base, every rebase moved by it, every bind pointed to a stop
of its own, where a Python function answers for the system's. Nothing is guessed: an import that nobody answers for, and
an access beside the memory that was laid out, end the test. Needs the packages lief and unicorn of the test extra.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from importlib import import_module
from typing import Any

from unicorn import arm64_const as arm
from unicorn import x86_const as x86

from tests.rig.mach_o_reader import lief

unicorn: Any = import_module("unicorn")  # it comes without most types

BASE = 0x1_0000_0000
STOPS, STOP_BYTES = 0x2_0000_0000, 16
HEAP, HEAP_BYTES = 0x3_0000_0000, 0x100000
STACK, STACK_BYTES = 0x4_0000_0000, 0x40000
FILES = 0x5_0000_0000
PAGE = 0x4000
MAX_INSTRUCTIONS = 20_000_000
CANARY = 0x0BADC0DE_5EED_0A00
VARIABLES = {"___stack_chk_guard": CANARY, "_h_errno": 0}
MAX_STRING = 4096
INT = 0xFFFF_FFFF

Answers = dict[str, tuple[str, Callable[..., int]]]


class Processor:
    """What differs between the two architectures: registers, the way back, and where arguments are."""

    def __init__(self, machine: Any) -> None:
        self.is_arm = machine.header.cpu_type == lief().MachO.Header.CPU_TYPE.ARM64
        if self.is_arm:
            self.uc = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
            self.uc.ctl_set_cpu_model(arm.UC_CPU_ARM64_MAX)  # the others lack Apple's atomic instructions
            self.arguments = [getattr(arm, f"UC_ARM64_REG_X{number}") for number in range(8)]
            self.result, self.stack, self.back = arm.UC_ARM64_REG_X0, arm.UC_ARM64_REG_SP, bytes.fromhex("c0035fd6")
        else:
            self.uc = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64)
            self.arguments = [getattr(x86, f"UC_X86_REG_{name}") for name in ("RDI", "RSI", "RDX", "RCX", "R8", "R9")]
            self.result, self.stack, self.back = x86.UC_X86_REG_RAX, x86.UC_X86_REG_RSP, b"\xc3"

    def enter(self, arguments: tuple[int, ...], named: int, way_back: int) -> None:
        """*named* is how many arguments the function has names for; Apple's arm64 has all others on the stack."""
        top = STACK + STACK_BYTES - PAGE
        registers = self.arguments[:named] if self.is_arm else self.arguments
        for register, value in zip(registers, arguments, strict=False):
            self.uc.reg_write(register, value & (1 << 64) - 1)
        more = b"".join(struct.pack("<Q", value) for value in arguments[len(registers) :])
        self.uc.mem_write(top, more)
        if self.is_arm:
            self.uc.reg_write(arm.UC_ARM64_REG_LR, way_back)
        else:
            top -= 8
            self.uc.mem_write(top, struct.pack("<Q", way_back))
        self.uc.reg_write(self.stack, top)

    def argument(self, number: int, kind: str) -> int:
        """Of a function that was just called."""
        if kind == "v" and self.is_arm:
            return int(struct.unpack("<Q", self.uc.mem_read(self.uc.reg_read(self.stack), 8))[0])
        if number < len(self.arguments):
            return int(self.uc.reg_read(self.arguments[number]))
        place = self.uc.reg_read(self.stack) + 8 * (number - len(self.arguments)) + (0 if self.is_arm else 8)
        return int(struct.unpack("<Q", self.uc.mem_read(place, 8))[0])


class MachO:
    """One architecture of a library in memory. *answers* has, for each import by its name in C, what its arguments are
    ("i": int, whose upper half means nothing in a register; "p": a pointer or a size; "v": an int that the function has
    no name for) and a function of them."""

    def __init__(self, library: bytes, answers: Answers) -> None:
        # Whoever drops the whole loses its parts.
        self._whole = lief().MachO.parse(list(library))
        assert self._whole is not None
        self._binary: Any = self._whole.at(0)
        self._processor = Processor(self._binary)
        self._answers = answers
        self._names: list[str] = []
        self.variables: dict[str, int] = {}  # of the system's: where each is
        self.uc = self._processor.uc
        self._free = HEAP
        self._lay_out()
        self.replacements = self._read_pairs()

    def _lay_out(self) -> None:
        for start, size in ((STOPS, PAGE), (HEAP, HEAP_BYTES), (STACK, STACK_BYTES)):
            self.uc.mem_map(start, size)
        self.uc.mem_write(STOPS, self._processor.back * (PAGE // len(self._processor.back)))
        end = max(segment.virtual_address + segment.virtual_size for segment in self._binary.segments)
        self.uc.mem_map(BASE, -(-end // PAGE) * PAGE)
        for segment in self._binary.segments:
            self.uc.mem_write(BASE + segment.virtual_address, bytes(segment.content))
        for rebase in self._binary.relocations:
            self._write_word(BASE + rebase.address, BASE + self.word(BASE + rebase.address))
        for binding in self._binary.bindings:
            self._write_word(BASE + binding.address, self._import(binding.symbol.name))
        self.uc.hook_add(unicorn.UC_HOOK_CODE, self._stop, begin=STOPS, end=STOPS + PAGE - 1)

    def _import(self, symbol: str) -> int:
        if symbol in VARIABLES:
            self.variables[symbol] = self.put(struct.pack("<Q", VARIABLES[symbol]))
            return self.variables[symbol]
        name = symbol.removeprefix("_").partition("$")[0]  # fstat$INODE64 is x86_64's name for fstat
        if name not in self._names:
            self._names.append(name)
        return STOPS + STOP_BYTES * (1 + self._names.index(name))

    def _read_pairs(self) -> dict[str, int]:
        """The replacement of each hooked function, by the section that dyld reads."""
        section = next(one for one in self._binary.sections if one.name == "__interpose")
        pairs = range(BASE + section.virtual_address, BASE + section.virtual_address + section.size, 16)
        return {self._name_at(self.word(pair + 8)): self.word(pair) for pair in pairs}

    def _name_at(self, stop: int) -> str:
        return self._names[(stop - STOPS) // STOP_BYTES - 1]

    def _stop(self, _uc: Any, address: int, _size: int, _data: Any) -> None:
        if address == STOPS:  # the way back of call()
            return
        name = self._name_at(address)
        assert name in self._answers, f"the library calls {name}, for which nobody answers"
        kinds, answer = self._answers[name]
        values = [self._processor.argument(number, kind) for number, kind in enumerate(kinds)]
        result = answer(*(value if kind == "p" else value & INT for kind, value in zip(kinds, values, strict=True)))
        self.uc.reg_write(self._processor.result, result & (1 << 64) - 1)

    def call(self, name: str, *arguments: int, named: int = 8) -> int:
        """What the replacement of a function returns, as an int of C."""
        result = self.call_for_pointer(name, *arguments, named=named) & INT
        return result - (1 << 32) if result >> 31 else result

    def call_for_pointer(self, name: str, *arguments: int, named: int = 8) -> int:
        self._processor.enter(arguments, named, STOPS)
        self.uc.emu_start(self.replacements[name], STOPS, count=MAX_INSTRUCTIONS)
        return int(self.uc.reg_read(self._processor.result))

    def put(self, data: bytes) -> int:
        """Where the bytes now are."""
        place = self._free
        self._free += -(-max(len(data), 1) // 16) * 16 + 16
        assert self._free <= HEAP + HEAP_BYTES, "the heap is full"
        self.write(place, data)
        return place

    def put_file(self, data: bytes) -> int:
        """Where a file's bytes are now: the next one after them faults."""
        size = -(-len(data) // PAGE) * PAGE
        self.uc.mem_map(FILES, size)
        self.write(FILES + size - len(data), data)
        return FILES + size - len(data)

    def read(self, place: int, size: int) -> bytes:
        return bytes(self.uc.mem_read(place, size))

    def write(self, place: int, data: bytes) -> None:
        self.uc.mem_write(place, data)

    def word(self, place: int) -> int:
        return int(struct.unpack("<Q", self.read(place, 8))[0])

    def string(self, place: int) -> bytes:
        found = bytearray()
        while len(found) < MAX_STRING and (byte := self.read(place + len(found), 1)) != b"\0":
            found += byte
        return bytes(found)

    def _write_word(self, place: int, value: int) -> None:
        self.write(place, struct.pack("<Q", value))
