"""Where port maps have a name, for the moments between their making and the mount that takes its place.

A name tells whose it is, by pid and start time: what a killed supervisor left is removed by the next one (INV-10).
"""

from __future__ import annotations

import os

from netsandbox.backends.namespaces import procfs

_START_TIME = 19  # in /proc/<pid>/stat, counted behind the program's name, which may hold anything


def new_path(state: str) -> str:
    """A path for the map of a session of this process; what the dead left beside it is gone."""
    folder = os.path.join(state, "maps")
    os.makedirs(folder, 0o700, exist_ok=True)
    for name in os.listdir(folder):
        if not _is_live(name):
            _remove(os.path.join(folder, name))
    pid = os.getpid()
    return os.path.join(folder, f"{pid}-{_started(pid)}-{os.urandom(8).hex()}")


def _is_live(name: str) -> bool:
    pid, _, rest = name.partition("-")
    return pid.isdecimal() and rest.partition("-")[0] == _started(int(pid))


def _started(pid: int) -> str:
    """When the process began, in the kernel's ticks; empty when there is none."""
    try:
        return procfs.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[_START_TIME]
    except (OSError, IndexError):
        return ""


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:  # another was faster
        pass
