"""The name of a port map on the host, which it has only until it is mounted in its session.

The name has the pid and start time of its owner, so that the next supervisor removes the map of a killed one (INV-10).
"""

from __future__ import annotations

import os

from netsandbox.backends.linux import procfs

_START_TIME = 19  # field of /proc/<pid>/stat, counted after the program's name, which may hold anything


def new_map_path(state: str) -> str:
    """A path for the map of a session of this process; maps of dead processes beside it are removed."""
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
    """The start time of the process in the kernel's ticks; empty if there is no such process."""
    try:
        return procfs.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[_START_TIME]
    except (OSError, IndexError):
        return ""


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:  # another process removed it first
        pass
