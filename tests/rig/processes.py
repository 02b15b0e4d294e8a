"""Processes as /proc shows them: who carries a mark in his environment, who descends from whom, which namespaces."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
from dataclasses import dataclass
from pathlib import Path

NAMESPACES = ("net", "mnt", "pid", "user", "ipc")


@dataclass(frozen=True)
class Process:
    """A process, told from a later one with the same number by its start time."""

    pid: int
    started: int

    @property
    def alive(self) -> bool:
        state = _stat(self.pid)
        return state is not None and state[1] == self.started and state[2] != "Z"

    @property
    def command(self) -> str:
        try:
            return Path(f"/proc/{self.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            return "?"

    @property
    def name(self) -> str:
        """As the process calls itself; the helper's processes differ by it."""
        return _read(f"/proc/{self.pid}/comm").decode(errors="replace").strip()


def _stat(pid: int) -> tuple[int, int, str] | None:
    """(parent, start time, state) of PID, or None when there is none."""
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return (int(fields[1]), int(fields[19]), fields[0].decode()) if fields else None


def _read(path: str) -> bytes:
    """A file of /proc, or nothing of a process that is gone. Every session of a test ends with a look at all processes,
    so this is not left to `Path`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts = []
            while part := os.read(descriptor, 1 << 17):
                parts.append(part)
        finally:
            os.close(descriptor)
    except OSError:
        return b""
    return b"".join(parts)


def running() -> dict[Process, int]:
    """Every process that is not a zombie, with its parent's number."""
    found: dict[Process, int] = {}
    for entry in os.listdir("/proc"):
        state = _stat(int(entry)) if entry.isdigit() else None
        if state is not None and state[2] != "Z":
            found[Process(int(entry), state[1])] = state[0]
    return found


def descendants(pid: int) -> set[Process]:
    """PID and everything below it."""
    table = running()
    family = {pid}
    while True:
        more = {process.pid for process, parent in table.items() if parent in family} - family
        if not more:
            return {process for process in table if process.pid in family}
        family |= more


def marked(mark: str) -> set[Process]:
    """Processes whose environment holds MARK (those whose environment we may read)."""
    wanted = mark.encode()
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    states = {pid: _stat(pid) for pid in pids if wanted in _read(f"/proc/{pid}/environ")}
    return {Process(pid, state[1]) for pid, state in states.items() if state is not None and state[2] != "Z"}


def descriptors(pid: int) -> set[str]:
    """What PID has open, as `socket:[12345]` or a path; nothing of a process that has ended."""
    found = set()
    with contextlib.suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):  # closed meanwhile
                found.add(os.readlink(entry.path))
    return found


def own_descriptors() -> int:
    """How many this process has open, without those that wait for the garbage collector only."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def is_gone(pid: int) -> bool:
    """Whether it has ended; a zombie has."""
    state = _stat(pid)
    return state is None or state[2] == "Z"


def namespaces(pid: int) -> set[str]:
    """The namespaces of PID that are not our own, as `net:[4026531840]`."""
    return {link for name in NAMESPACES if (link := _namespace(pid, name)) and link != _namespace(os.getpid(), name)}


def hold_namespaces(pid: int) -> set[int]:
    """Descriptors that keep the namespaces of PID, and so their numbers, from ending."""
    held = set()
    for name in NAMESPACES:
        with contextlib.suppress(OSError):
            held.add(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC))
    return held


def let_go(descriptors: set[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _namespace(pid: int, name: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/{name}")
    except OSError:
        return ""


def end(processes: set[Process]) -> None:
    """Kills these processes, by number, if they are still the same ones."""
    for process in processes:
        if process.alive and process.pid != os.getpid():
            try:
                os.kill(process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
