"""Finds what else must be executable for a program to run: its interpreter, or the loader of its libraries."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_DEPTH = 4  # a script's interpreter may be a script; binfmt_script of the kernel goes as deep
MAX_HEAD = 4096
PT_INTERP = 3  # elf(5)
SHELL = "/bin/sh"


def find_program(name: str, path: str) -> str | None:
    """The real path of a command, as execvp(3) finds it."""
    if "/" in name:
        return os.path.realpath(name) if os.path.exists(name) else None
    for folder in path.split(":"):
        if os.access(f"{folder}/{name}", os.X_OK) and os.path.isfile(f"{folder}/{name}"):
            return os.path.realpath(f"{folder}/{name}")
    return None


def needed_programs(programs: Iterable[str], path: str) -> tuple[str, ...]:
    """*programs*, real paths of files or folders, and what they need; for folders that is the system's loader."""
    found: dict[str, None] = {}
    waiting = [(program, 0) for program in programs]
    waiting += [(loader, 1) for loader in _needs(os.path.realpath(SHELL), path)]
    while waiting:
        program, depth = waiting.pop(0)
        if program in found or not os.path.exists(program):
            continue
        found[program] = None
        if depth < MAX_DEPTH:
            waiting += [(need, depth + 1) for need in _needs(program, path)]
    return tuple(found)


def _needs(program: str, path: str) -> list[str]:
    try:
        if not os.path.isfile(program):
            return []
        with open(program, "rb") as file:
            head = file.read(MAX_HEAD)
            if head.startswith(b"#!"):
                return interpreters(head, path)
            place = loader_place(head)
            if place is None:
                return []
            file.seek(place[0])
            loader = file.read(min(place[1], MAX_HEAD)).rstrip(b"\0")
    except (OSError, ValueError, OverflowError):  # it may be executed without being readable, or have no valid head
        return []
    return [os.path.realpath(os.fsdecode(loader))] if loader.startswith(b"/") else []


def interpreters(head: bytes, path: str) -> list[str]:
    """The interpreter in the first line of a script, and the program that env(1) starts for it."""
    words = [os.fsdecode(word) for word in head[2:].partition(b"\n")[0].split()]
    if not words or not words[0].startswith("/"):
        return []
    found = [os.path.realpath(words[0])]
    if words[0].endswith("/env"):
        named = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), None)
        program = find_program(named, path) if named else None
        found += [program] if program else []
    return found


def loader_place(head: bytes) -> tuple[int, int] | None:
    """Where a 64-bit ELF file names its loader: offset and length. None for a static program or another file."""
    if head[:6] != b"\x7fELF\x02\x01" or len(head) < 64:
        return None
    table, size, count = _u(head, 32, 8), _u(head, 54, 2), _u(head, 56, 2)
    for at in range(table, min(table + size * count, len(head) - 55), max(size, 1)):
        if _u(head, at, 4) == PT_INTERP:
            return _u(head, at + 8, 8), _u(head, at + 32, 8)
    return None


def _u(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
