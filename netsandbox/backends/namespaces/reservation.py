"""What a session of namespaces holds before its command runs: beside window and name, its port map and its own doors.

The doors are made inside of the session; here are their descriptions for the plan. The port map has a name on the host
only between its making and the mount that takes its place. The name tells its owner by pid and start time, so the next
supervisor removes what a killed one left (INV-10).
"""

from __future__ import annotations

import os

from netsandbox_portmap import door_ports
from netsandbox_portmap.reservation import MapDoors, MapSource, Reservation
from netsandbox_portmap.strategies import REWIRE_DEVICE

from netsandbox.backends.namespaces import plan
from netsandbox.backends.namespaces.mount_view import FILES

_START_TIME = 19  # in /proc/<pid>/stat, counted behind the program's name, which may hold anything


class NamespaceReservation(Reservation):
    """A reservation whose doors and port map are inside of the session."""

    def environment(self, inner: dict[bytes, bytes]) -> dict[bytes, bytes]:
        made = super().environment(inner)
        if self.map is None:
            return made
        from netsandbox_interpose.library import inject

        return inject(made)

    def covers(self) -> tuple[tuple[str, str], ...]:
        """Files that differ inside (INV-8): the locks are an empty file there, the placeholder is the port map."""
        found = [(os.path.join(FILES, "nothing"), self.host_locks)] if self.host_locks is not None else []
        if self.map is not None:
            from netsandbox_interpose.library import PORT_MAP

            found.append((self.map.path, PORT_MAP))
            if self.settings.strategy == REWIRE_DEVICE:  # its device is an IPv4 address: localhost is that alone
                found.append((os.path.join(FILES, "hosts-ipv4"), "/etc/hosts"))
        return tuple(found)

    def doors(self) -> tuple[plan.Door, ...]:
        """The doors of the session's localhost, beside those of the network."""
        return plan.localhost_doors(self.settings.connect_host, asking=self.map is not None)

    def forget_map_name(self) -> None:
        """The session has its mounts: the map needs no name on the host any more."""
        if self.map is not None:
            self.map.unlink()

    def _map_source(self, state: str) -> MapSource:
        from netsandbox.backends.preload import load_native

        native = load_native()
        doors = MapDoors(door_ports.ASKING, (door_ports.DNS, door_ports.MIXED, door_ports.ASKING))
        return MapSource(native, new_map_path(state), doors)


def new_map_path(state: str) -> str:
    """A path for the map of a session of this process; maps that dead processes left beside it are removed."""
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
    """The start time of the process in the kernel's ticks; empty when there is none."""
    from netsandbox.backends.namespaces import procfs

    try:
        return procfs.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[_START_TIME]
    except (OSError, IndexError):
        return ""


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:  # another was faster
        pass
