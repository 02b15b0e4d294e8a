"""What a session must not leave behind (INV-10): processes, namespaces, mounts, ports, files, shared memory."""

from __future__ import annotations

import time
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from tests.rig import processes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.rig.command import CommandLine, Home, Spawned

# The log outlives its session; names and ports are locked in files that stay, empty; the first session is noted for
# ever.
KEPT = ("audit.jsonl", "names", "ports", "first-session")
# The one disk cache of configuration (config/cache.py), and the private home of each project with the empty file that
# is mounted over hidden ones and the list of a large project (private_folders.py).
REMEMBERED = ("cache", "homes/nothing", "homes/closed", "homes/*/home", "homes/*/repositories*", "homes/*/links")
LISTEN, UDP_BOUND = "0A", "07"
PAUSE = 0.02
SOON = 10.0  # seconds, as INV-10 says in docs/invariants.md; on a machine with nothing else to do it is less than one
Left = TypeVar("Left")


@dataclass(frozen=True)
class Snapshot:
    """What is there now: processes with the mark of a test's homes and their ports on the host, mounts, files."""

    processes: frozenset[str]
    mounts: frozenset[str]
    files: frozenset[str]
    ports: frozenset[str]

    def __sub__(self, other: Snapshot) -> dict[str, list[str]]:
        """What is here and was not in OTHER, by kind; empty when nothing was left."""
        kinds = {
            "processes": self.processes - other.processes,
            "mounts": self.mounts - other.mounts,
            "files": self.files - other.files,
            "ports": self.ports - other.ports,
        }
        return {kind: sorted(things) for kind, things in kinds.items() if things}


class Watch:
    """The processes and namespaces of a running session, to be gone later whatever their environment says.

    It keeps the namespaces open: the kernel gives the number of an ended one to the next session.
    """

    def __init__(self, family: set[processes.Process]) -> None:
        self.family = frozenset(family)
        self.namespaces = {space for process in family for space in processes.namespaces(process.pid)}
        held = {fd for process in family for fd in processes.hold_namespaces(process.pid)}
        weakref.finalize(self, processes.let_go, held)

    def remains(self) -> list[str]:
        alive = [f"{p.pid} {p.command}" for p in self.family if p.alive]
        inside = [p for p in processes.running() if self.namespaces & processes.namespaces(p.pid)]
        return alive + [f"{p.pid} {p.command} in the session's namespaces" for p in inside if p not in self.family]

    def assert_gone(self, within: float = SOON) -> None:
        left = what_stays(self.remains, within)
        assert not left, f"still there after {within} s: {left}"


class Leftovers:
    """`leftovers()` takes a snapshot, `assert_none(before)` compares; `watch(spawned)` remembers a running session."""

    def __init__(self, line: CommandLine) -> None:
        self._line = line

    def __call__(self) -> Snapshot:
        homes = [self._line.home()]
        mounts = frozenset(place for home in homes for place in _mounts(str(home.path)))
        files = frozenset(str(file) for home in homes for file in _files(home))
        marked = {process for home in homes for process in processes.marked(home.mark)}
        names = frozenset(f"{p.pid} {p.command}" for p in marked)
        return Snapshot(names, mounts, files | _shared_memory(), _ports(marked))

    def assert_none(self, before: Snapshot, within: float = SOON) -> None:
        left = what_stays(lambda: self() - before, within)
        assert not left, f"left behind after {within} s: {left}"

    def watch(self, spawned: Spawned) -> Watch:
        return Watch(spawned.family())


def what_stays(look: Callable[[], Left], within: float = SOON) -> Left:
    """What is still there after so many seconds."""
    deadline = time.monotonic() + within
    while (left := look()) and time.monotonic() < deadline:
        time.sleep(PAUSE)
    return left


def _files(home: Home) -> list[Path]:
    return [file for folder in (home.path / "run", home.path / "tmp") for file in _all_in(folder)] + unkept(home.state)


def unkept(state: Path) -> list[Path]:
    """What is in a state home and is not meant to outlive its session, or was meant to stay empty."""
    remembered = {found for name in REMEMBERED for found in (state / "netsandbox").glob(name)}
    remembered -= {found for found in remembered if found.name in ("nothing", "closed") and found.stat().st_size}
    return [f for f in _all_in(state) if not f.name.startswith(KEPT) and not remembered & {f, *f.parents}]


def _mounts(home: str) -> list[str]:
    """Those of something in *home*, or there; other programs of this machine mount too."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split(" ", 5)[4] for line in lines if home in line]


def _all_in(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if not file.is_dir()]


def _shared_memory() -> frozenset[str]:
    return frozenset(str(file) for file in Path("/dev/shm").glob("*netsandbox*"))


def _ports(holders: set[processes.Process]) -> frozenset[str]:
    """Where these processes listen on the host; others open ports there too."""
    held = {link for holder in holders for link in processes.descriptors(holder.pid)}
    found = set()
    for table, state in (("tcp", LISTEN), ("tcp6", LISTEN), ("udp", UDP_BOUND), ("udp6", UDP_BOUND)):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == state and f"socket:[{fields[9]}]" in held:
                found.add(f"{table} {int(fields[1].rpartition(':')[2], 16)}")
    return frozenset(found)


@pytest.fixture
def leftovers(netsandbox: CommandLine) -> Leftovers:
    """Says what a session left behind."""
    return Leftovers(netsandbox)
