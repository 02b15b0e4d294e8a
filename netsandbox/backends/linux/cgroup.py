"""A cgroup of the session's own (cgroups(7), version 2), where its limits hold for all its processes together.

There are two ways to one. Where systemd runs, its manager owns the tree: that of root, or the user's own. A scope is
requested from it over its private socket (D-Bus), with the limits as properties; the manager removes the scope when its
last process has ended, also after a kill of the supervisor. Elsewhere we make a folder in the nearest cgroup above ours
that we may write and that has the controllers. What a killed supervisor left is removed at the next start that has
limits.

A limit counts as held only when the kernel's file of the session's cgroup shows it.
"""

from __future__ import annotations

import os
import time

from netsandbox.errors import HostError
from netsandbox.policy.limits import OWN_PROCESSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from netsandbox.policy.limits import Limits

MARK = "netsandbox-"
PATIENCE, PAUSE = 10.0, 0.002  # seconds for the manager to make a scope, and between two looks
PERIOD = 100_000  # microseconds, of cpu.max
# limit: (controller, its file)
FILES = {"memory": ("memory", "memory.max"), "processes": ("pids", "pids.max"), "cpu": ("cpu", "cpu.max")}


def contents(limits: Mapping[str, int]) -> dict[str, str]:
    """What the kernel's files must say (pure)."""
    made = {
        "memory": lambda value: str(value & -4096),
        "processes": lambda value: str(value + OWN_PROCESSES),
        "cpu": lambda value: f"{value * PERIOD // 100} {PERIOD}",
    }
    return {FILES[name][1]: made[name](value) for name, value in limits.items() if name in FILES}


class Cgroup:
    """*manager* is the socket of a manager of systemd; without one, *folder* is an existing cgroup to make ours in."""

    def __init__(self, session: str, limits: Limits, folder: str, manager: str | None = None) -> None:
        self.wanted = {name: value for name, value in limits if name in FILES}
        self.folder = folder
        self._manager = manager
        self._name = f"{MARK}{session}"
        self._is_made = False
        if manager is not None:
            from netsandbox.backends.linux.systemd_scope import start_scope  # now: imports are sealed later

            self._start_scope = start_scope

    @property
    def owner(self) -> str:
        return "cgroup" if self._manager is None else "cgroup of systemd"

    def enter(self, pid: int) -> None:
        """Move the session's PID 1 there. The command does not run yet."""
        try:
            if self._manager is None:
                self._make(pid)
            else:
                self._request(self._manager, pid)
            self._verify()
        except OSError as error:
            raise HostError(f"cannot limit the session by a cgroup: {error.strerror or error}; {ADVICE}") from None

    def _make(self, pid: int) -> None:
        sweep(self.folder)
        self.folder = f"{self.folder}/{self._name}"
        os.mkdir(self.folder)
        self._is_made = True
        for file, content in contents(self.wanted).items():
            _write(f"{self.folder}/{file}", content)
        if "memory" in self.wanted and os.path.exists(f"{self.folder}/memory.swap.max"):
            _write(f"{self.folder}/memory.swap.max", "0")
        _write(f"{self.folder}/cgroup.procs", str(pid))

    def _request(self, manager: str, pid: int) -> None:
        unit = f"{self._name}.scope"
        self._start_scope(manager, unit, pid, self.wanted)
        until = time.monotonic() + PATIENCE
        while not (place := own_cgroup(pid)).endswith(f"/{unit}"):
            if time.monotonic() > until:
                raise OSError(f"the scope {unit} did not start")
            time.sleep(PAUSE)
        self.folder = f"{mount_point()}{place}"

    def _verify(self) -> None:
        for file, content in contents(self.wanted).items():
            try:
                found = _read(f"{self.folder}/{file}")
            except FileNotFoundError:
                found = "no controller"
            if found != content:
                raise OSError(f"{file} has {found!a} instead of {content!a}")

    def breaches(self) -> list[str]:
        """The limits that the session ran into."""
        found = []
        for name, file, key in (("memory", "memory.events", "oom_kill"), ("processes", "pids.events", "max")):
            try:
                counts = dict(line.split(" ", 1) for line in _read(f"{self.folder}/{file}").split("\n"))
            except (OSError, ValueError):  # systemd was faster
                continue
            if name in self.wanted and counts.get(key, "0") != "0":
                found.append(name)
        return found

    def usage(self) -> dict[str, object]:
        """CPU time, and memory with the files that it caches."""
        used: dict[str, object] = {}
        try:
            first = _read(f"{self.folder}/cpu.stat").partition("\n")[0]
            used["cpu_seconds"] = int(first.removeprefix("usage_usec ")) / 1e6
            used["memory_bytes"] = int(_read(f"{self.folder}/memory.current"))
        except (OSError, ValueError):  # without the controller
            pass
        return used

    def close(self) -> None:
        """Called when all processes have ended. The kernel may need a moment to notice."""
        until = time.monotonic() + PATIENCE
        while self._is_made:
            try:
                os.rmdir(self.folder)
            except FileNotFoundError:
                pass
            except OSError:
                if time.monotonic() < until:
                    time.sleep(PAUSE)
                    continue
            self._is_made = False


ADVICE = (
    "log in so that systemd runs a manager for you (`loginctl enable-linger`) that delegates"
    " cpu, memory and pids, or run as root where /sys/fs/cgroup can be written"
)


def find_cgroup(session: str, limits: Limits) -> Cgroup | None:
    """The way to a cgroup that can hold *limits* on this machine; None if there is none."""
    needed = {FILES[name][0] for name, _ in limits if name in FILES}
    base = mount_point()
    if base is None:
        return None
    if (found := manager_of(os.geteuid())) is not None:
        socket, place = found
        if needed <= _words(f"{base}{place}/cgroup.controllers"):
            return Cgroup(session, limits, "", socket)
        return None  # the tree is the manager's
    place = own_cgroup(os.getpid())
    while True:
        folder = f"{base}{place.rstrip('/')}"
        if _can_hold(folder, needed):
            return Cgroup(session, limits, folder)
        if place in ("", "/"):
            return None
        place = place.rpartition("/")[0]


def manager_of(uid: int) -> tuple[str, str] | None:
    """The private socket of the systemd manager that this user may ask, and the cgroup that it owns."""
    if uid == 0:
        socket, place = "/run/systemd/private", "/"
    else:
        socket, place = (
            f"/run/user/{uid}/systemd/private",
            f"/user.slice/user-{uid}.slice/user@{uid}.service",
        )
    return (socket, place) if os.path.exists(socket) else None


def mount_point() -> str | None:
    """Where version 2 is mounted."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            words, _, kind = line.partition(" - ")
            if kind.startswith("cgroup2 "):
                return words.split(" ")[4]
    return None


def own_cgroup(pid: int) -> str:
    """The path of a process in version 2; '' if it has none."""
    lines = _read(f"/proc/{pid}/cgroup").split("\n")
    return next((line[3:] for line in lines if line.startswith("0::")), "")


def sweep(folder: str) -> None:
    """Remove the cgroups of sessions whose supervisor was killed: those without a process."""
    for name in os.listdir(folder):
        if name.startswith(MARK):
            try:
                os.rmdir(f"{folder}/{name}")
            except OSError:  # it is in use
                pass


def _can_hold(folder: str, needed: set[str]) -> bool:
    """Whether a cgroup made in *folder* has the controllers. They cannot be enabled where processes are."""
    if not os.access(f"{folder}/cgroup.procs", os.W_OK) or not os.access(folder, os.W_OK):
        return False
    missing = needed - _words(f"{folder}/cgroup.subtree_control")
    try:
        if missing:
            _write(f"{folder}/cgroup.subtree_control", " ".join(f"+{name}" for name in sorted(missing)))
    except OSError:
        return False
    return True


def _words(path: str) -> set[str]:
    try:
        return set(_read(path).split())
    except OSError:
        return set()


def _read(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read().strip()


def _write(path: str, content: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, content.encode("ascii"))
    finally:
        os.close(descriptor)
