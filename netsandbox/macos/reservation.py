"""What a session holds on a Mac before its command runs: beside window, name and map, the sockets of its doors.

Everything is a lock or a socket of this process, so the kernel takes it back when we die (INV-10); the file of the port
map is in the session's folder, which is swept with its log.
"""

from __future__ import annotations

import os

from netsandbox_interpose.library import LIBRARY, PORT_MAP_VARIABLE
from netsandbox_portmap.strategies import REWIRE_DEVICE

from netsandbox.audit.places import session_dir
from netsandbox.errors import HostError
from netsandbox.localhost.reservation import Reservation
from netsandbox.macos.alias import can_bind, check_device
from netsandbox.macos.door_sockets import DoorSockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.localhost.settings import LocalhostSettings

MAP_NAME = "ports"


class MacReservation(Reservation):
    """*settings* are those of `mac_settings`: there is always a window."""

    def __init__(self, settings: LocalhostSettings, state: str, session: str) -> None:
        self._session = session
        self._doors: list[DoorSockets] = []
        self.asking: DoorSockets | None = None  # where the library asks, in sessions that have it
        if settings.engine == "preload" and not os.path.exists(LIBRARY):
            advice = "reinstall netsandbox, or use --network-strategy fail, which needs none"
            raise HostError(f"there is no preload library at {LIBRARY}; {advice}")
        if settings.device is not None:
            check_device(settings.device, can_bind)
        super().__init__(settings, state)
        try:
            if settings.strategy == REWIRE_DEVICE:
                assert self.window is not None
                check_device(self.window.device, can_bind)
            self.mixed = self._door(listens=True)
            self.closed = self._door(listens=False)  # for the self-test: bound, so that nobody listens there
        except BaseException:
            self.close()
            raise

    @property
    def by_name_port(self) -> int | None:
        """None: servers are where their programs put them."""
        return None

    def environment(self, inner: dict[bytes, bytes]) -> dict[bytes, bytes]:
        """Nothing is mounted here, so the map is named by its own path."""
        made = super().environment(inner)
        if self.map is not None:
            made[PORT_MAP_VARIABLE] = os.fsencode(self.map.path)
        return made

    def close(self) -> None:
        for door in self._doors:
            door.close()
        super().close()

    def _map_place(self, state: str) -> tuple[str, int, tuple[int, ...]]:
        folder = session_dir(self._session)
        os.makedirs(folder, 0o700, exist_ok=True)
        self.asking = self._door(listens=True)
        return os.path.join(folder, MAP_NAME), self.asking.port, (self.asking.port,)

    def _door(self, *, listens: bool) -> DoorSockets:
        window = self.window
        assert window is not None
        made = DoorSockets((*window.ports, *self.settings.connect_host), listens=listens)
        self._doors.append(made)
        return made
