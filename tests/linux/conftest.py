"""Support for the backend's tests: a second opinion on BPF, and a log that remembers."""

from __future__ import annotations

import struct
from typing import Any

import pytest


def run_bpf(program: bytes, number: int, architecture: int, arguments: tuple[int, ...] = ()) -> int:
    """What the filter returns for a call: the classic BPF machine of the kernel's documentation, written anew."""
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("<IIQ6Q", number, architecture, 0, *(value & (1 << 64) - 1 for value in padded))
    steps = list(struct.iter_unpack("<HBBI", program))
    accumulator, at = 0, 0
    while True:
        code, if_true, if_false, constant = steps[at]
        at += 1
        if code == 0x06:
            return int(constant)
        if code == 0x20:
            assert constant % 4 == 0
            (accumulator,) = struct.unpack_from("<I", data, constant)
        elif code == 0x54:
            accumulator &= constant
        elif code in (0x15, 0x35, 0x45):
            holds = {0x15: accumulator == constant, 0x35: accumulator >= constant, 0x45: bool(accumulator & constant)}
            at += if_true if holds[code] else if_false
        else:
            raise AssertionError(f"unknown instruction {code:#x}")


@pytest.fixture(scope="session")
def bpf() -> Any:
    """bpf(program, number, architecture, arguments) -> the filter's answer."""
    return run_bpf


class FakeLog:
    """Takes the audit log's place; `broken` makes every write fail."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.failed: str | None = None

    def write(self, event: str, **fields: Any) -> bool:
        if self.failed is not None:
            return False
        self.records.append({"event": event, **{name: value for name, value in fields.items() if value is not None}})
        return True


@pytest.fixture
def log() -> FakeLog:
    return FakeLog()
