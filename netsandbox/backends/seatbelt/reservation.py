"""What a session holds on macOS before its command runs: the sockets of its doors, besides window, name and map.

Everything is a lock or a socket of this process, so the kernel frees it when we die (INV-10). The port map's file is in
the session's folder, which is swept with its log.

Any program of the host can connect to a door, so the door requires a token (attacks 53, 182, 184): 128 random bits for
each session. The token is in no log. Only the supervisor, the session's environment and its port map have it.

macOS answers only on 127.0.0.1 until root gives `lo0` another address, which strategy `rewire-device` needs. The user
does that once: the error shows the command, and netsandbox never prompts for a password.
"""

from __future__ import annotations

import _socket
import errno
import os

from netsandbox_interpose.library import LIBRARY, PORT_MAP_VARIABLE, inject
from netsandbox_portmap import REWIRE_DEVICE
from netsandbox_portmap.reservation import MapDoors, MapSource, Reservation

from netsandbox.backends.seatbelt.door_sockets import DoorSockets
from netsandbox.backends.seatbelt.profile_inputs import SessionPorts
from netsandbox.errors import HostError
from netsandbox.paths import session_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox_portmap.localhost_settings import LocalhostSettings

MAP_NAME = "ports"


def map_path(session: str) -> str:
    return os.path.join(session_dir(session), MAP_NAME)


class SeatbeltReservation(Reservation):
    """*settings* come from `mac_settings`, so there is always a window. *opens*: whether anything may leave."""

    def __init__(
        self, settings: LocalhostSettings, state: str, session: str, *, opens: bool, library: str = LIBRARY
    ) -> None:
        self.library = library
        self.token = new_token()  # for the proxy's password, the preamble and the map
        self.mixed: DoorSockets | None = None  # the proxy door
        self.dns: DoorSockets | None = None  # the DNS door
        self.requests: DoorSockets | None = None  # where the preload library requests ports, in sessions that load it
        self.session = session
        self._opens = opens
        self._doors: list[DoorSockets] = []
        if settings.engine == "preload" and not os.path.exists(library):
            advice = "reinstall netsandbox, or use --network-strategy fail, which needs none"
            raise HostError(f"there is no preload library at {library}; {advice}")
        if settings.device is not None:
            check_device(settings.device, can_bind)
        super().__init__(settings, state)

    def environment(self, inner: dict[bytes, bytes]) -> dict[bytes, bytes]:
        """Nothing is mounted here, so the variable has the map's own path."""
        made = super().environment(inner)
        if self.map is None:
            return made
        return {**inject(made, self.library), PORT_MAP_VARIABLE: os.fsencode(self.map.path)}

    def ports(self) -> SessionPorts:
        """The ports that the profile opens."""
        window = self.window
        assert window is not None
        doors = map(port_of, (self.mixed, self.dns, self.requests))
        return SessionPorts(self.settings.strategy, window.base, window.count, *doors)

    def close(self) -> None:
        for door in self._doors:
            door.close()
        super().close()

    def _take_doors(self) -> None:
        if self.settings.strategy == REWIRE_DEVICE:
            assert self.window is not None
            check_device(self.window.device, can_bind)
        if self._opens:
            self.mixed = self._door(listens=True)
            self.dns = self._door(listens=True, takes_datagrams=True)
        if self.settings.engine == "preload":
            self.requests = self._door(listens=True)
        self.closed = self._door(listens=False)  # for the self-test: bound and not listening

    def _map_source(self, state: str) -> MapSource:
        from netsandbox_interpose.library import load_native

        native = load_native()
        path = map_path(self.session)
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        return MapSource(native, path, self._map_doors())

    def _map_doors(self) -> MapDoors:
        """No door is rewritten, although it is a port of localhost like those that are."""
        mixed, dns, requests = map(port_of, (self.mixed, self.dns, self.requests))
        passing = tuple(port for port in (mixed, dns, requests) if port)
        return MapDoors(requests, passing, egress=mixed, resolver=dns, token=self.token)

    def _door(self, *, listens: bool, takes_datagrams: bool = False) -> DoorSockets:
        window = self.window
        assert window is not None
        avoid = (*window.ports, *(door.inside for door in self.settings.connect_host))
        made = DoorSockets(avoid, listens=listens, takes_datagrams=takes_datagrams)
        self._doors.append(made)
        return made


def port_of(door: DoorSockets | None) -> int:
    return door.port if door is not None else 0


def alias_command(device: str) -> str:
    return f"sudo ifconfig lo0 alias {device}"


def removal_command(device: str) -> str:
    return f"sudo ifconfig lo0 -alias {device}"


def check_device(device: str, can_bind: Callable[[str], bool]) -> None:
    """Raise an error that states what is missing, if anything is."""
    if not can_bind(device):
        raise HostError(
            f"this Mac has no loopback address {device}; run `{alias_command(device)}`, which lasts until the next"
            f" restart or `{removal_command(device)}`, and start the session with --listening-loopback {device}, or use"
            " --network-strategy rewire-port"
        )


def can_bind(device: str) -> bool:
    sock = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        sock.bind((device, 0))
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            return False
        raise HostError(f"cannot tell whether {device} is an address of this Mac: {error.strerror}") from None
    finally:
        sock.close()
    return True


TOKEN_BYTES = 16  # 128 bits
USER = b"netsandbox"  # proxies require a user name with the password; its value does not matter


def new_token() -> bytes:
    """The raw bytes, as in the port map."""
    return os.urandom(TOKEN_BYTES)


def password(token: bytes) -> bytes:
    """The token in hexadecimal digits, which every client sends unchanged in a URL. No door opens without a token."""
    if len(token) != TOKEN_BYTES:
        raise ValueError("a door on the shared loopback needs a token")
    return token.hex().encode("ascii")


def proxy_url(port: int, token: bytes) -> bytes:
    return b"http://%s:%s@localhost:%d" % (USER, password(token), port)
