"""What a session of this backend holds before its command runs: window, name and locks of every session, and
descriptions of its doors and of its port map (`map_paths`), which are made inside it."""

from __future__ import annotations

import os

from netsandbox_portmap import DNS_PORT, MIXED_PORT, REQUESTS_PORT, REWIRE_DEVICE
from netsandbox_portmap.reservation import MapDoors, MapSource, Reservation

from netsandbox.backends.namespaces import plan
from netsandbox.backends.namespaces.launch import FILES


class NamespaceReservation(Reservation):
    """`doors` describes those of the session's localhost, in addition to those of the network."""

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

    def parts(self) -> tuple[str, ...]:
        """The files of netsandbox that programs inside load: the library, and the placeholder of the port map."""
        if self.map is None:
            return ()
        from netsandbox_interpose.library import LIBRARY, PORT_MAP

        return (LIBRARY, PORT_MAP)

    def doors(self) -> tuple[plan.Door, ...]:
        return plan.localhost_doors((door.inside for door in self.settings.connect_host), requests=self.map is not None)

    def forget_map_name(self) -> None:
        """Remove the map's name on the host, once the session has its mounts."""
        if self.map is not None:
            self.map.unlink()

    def _map_source(self, state: str) -> MapSource:
        from netsandbox_interpose.library import load_native

        from netsandbox.backends.namespaces.map_paths import new_map_path

        native = load_native()
        doors = MapDoors(REQUESTS_PORT, (DNS_PORT, MIXED_PORT, REQUESTS_PORT))
        return MapSource(native, new_map_path(state), doors)
