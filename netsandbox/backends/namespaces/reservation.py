"""What a session of namespaces holds before its command runs: the port map and its doors, besides window and name.

The doors are made inside the session; this module has their descriptions for the plan. The port map has a name on the
host only until it is mounted in the session. The name has the pid and start time of its owner, so that the next
supervisor removes the map of a killed one (INV-10).
"""

from __future__ import annotations

import os

from netsandbox_portmap import ASKING_PORT, DNS_PORT, MIXED_PORT, REWIRE_DEVICE
from netsandbox_portmap.reservation import MapDoors, MapSource, Reservation

from netsandbox.backends.namespaces import plan
from netsandbox.backends.namespaces.mount_view import FILES

_START_TIME = 19  # field of /proc/<pid>/stat, counted after the program's name, which may hold anything


class NamespaceReservation(Reservation):
    """A reservation whose doors and port map are inside the session."""

    def environment(self, inner: dict[bytes, bytes]) -> dict[bytes, bytes]:
        made = super().environment(inner)
        if self.map is None:
            return made
        from netsandbox_interpose.library import inject

        return inject(made)

    def covers(self) -> tuple[tuple[str, str], ...]:
        """Files that differ inside (INV-8): the lock file is empty there, and the placeholder is the port map."""
        found = [(os.path.join(FILES, "nothing"), self.host_locks)] if self.host_locks is not None else []
        if self.map is not None:
            from netsandbox_interpose.library import PORT_MAP

            found.append((self.map.path, PORT_MAP))
            if self.settings.strategy == REWIRE_DEVICE:  # its device is an IPv4 address, so localhost is only that
                found.append((os.path.join(FILES, "hosts-ipv4"), "/etc/hosts"))
        return tuple(found)

    def doors(self) -> tuple[plan.Door, ...]:
        """The doors of the session's localhost, in addition to those of the network."""
        return plan.localhost_doors(self.settings.connect_host, asking=self.map is not None)

    def forget_map_name(self) -> None:
        """Remove the map's name on the host, once the session has its mounts."""
        if self.map is not None:
            self.map.unlink()

    def _map_source(self, state: str) -> MapSource:
        from netsandbox_interpose.library import load_native

        native = load_native()
        doors = MapDoors(ASKING_PORT, (DNS_PORT, MIXED_PORT, ASKING_PORT))
        return MapSource(native, new_map_path(state), doors)


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
    from netsandbox.backends.namespaces import procfs

    try:
        return procfs.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[_START_TIME]
    except (OSError, IndexError):
        return ""


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:  # another process removed it first
        pass
