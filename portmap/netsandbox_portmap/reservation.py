"""What a session holds on the host before its command runs: a window of ports, a name, ports to publish on, a port map.

Everything is held by locks and sockets of this process, so the kernel takes it back when we die, however that happens
(INV-10). What cannot be had is an error now, not a surprise later. On the path to exec: see the import diet.
"""

from __future__ import annotations

import os

from netsandbox.backends.namespaces import plan
from netsandbox.backends.namespaces.mount_view import FILES
from netsandbox.errors import HostError, UsageError
from netsandbox.frozen import frozen
from netsandbox_portmap import door_ports
from netsandbox_portmap.ranges import RangeLock
from netsandbox_portmap.strategies import FAIL, REWIRE_DEVICE, REWIRE_PORT
from netsandbox_portmap.window import WindowError, take_window

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket

    from netsandbox_portmap.contract import Native
    from netsandbox_portmap.localhost_settings import LocalhostSettings
    from netsandbox_portmap.port_map import PortMap
    from netsandbox_portmap.session_name import HeldName
    from netsandbox_portmap.window import HeldWindow, Window

HOST_LOCKS = "/tmp/netsandbox-ports"  # noqa: S108 (one file for all users; opened without following links)
FEW = 10  # ports of a window in which one that is taken on the host is missed


@frozen
class MapDoors:
    """What a port map says of doors, as `PortMap.create` has it; 0 stands for none."""

    door: int
    passing: tuple[int, ...]
    egress: int = 0
    resolver: int = 0
    token: bytes | None = None


class Reservation:
    """Take it, start the session with what it says, and close it when the session has ended."""

    library = ""  # the preload library, where it is not the one beside its package

    def __init__(self, settings: LocalhostSettings, state: str) -> None:
        self.settings = settings
        self.map: PortMap | None = None
        self.fixed: dict[int, list[_socket.socket]] = {}  # sockets bound for --publish PORT:HOSTPORT, by PORT
        self._window: HeldWindow | None = None
        self._name: HeldName | None = None
        self._locks, self._host_wide = _open_locks(state)
        try:
            if settings.has_window:
                self._window = self._take_window()
                self._check_published()
                self._bind_fixed()
            self._take_doors()
            if settings.engine == "preload":
                self.map = self._make_map(state)
        except BaseException:
            self.close()
            raise

    def take_name(self, name: str) -> None:
        """The name that the user gave, or an error: another session has it, or it is none."""
        from netsandbox_portmap.session_name import check_name, hold_name

        self._name = hold_name(check_name(name), explicit=True)

    @property
    def name(self) -> str:
        """The session's name; where none was given, from the working folder and its branch when it is first wanted."""
        if self._name is None:
            from netsandbox_portmap.session_name import branch_of, default_name, hold_name

            self._name = hold_name(default_name(os.curdir, branch_of(os.curdir)), explicit=False)
        return self._name.name

    @property
    def window(self) -> Window | None:
        return self._window.window if self._window is not None else None

    @property
    def by_name_port(self) -> int | None:
        """The last port of the window, unless --publish gave it away; with strategy `fail` all are the command's."""
        window = self.window
        if window is None or window.count == 1 or self.settings.strategy == FAIL or not self.settings.publishes:
            return None
        return None if any(outer == window.last for _, outer in self.settings.publish or ()) else window.last

    @property
    def asked(self) -> tuple[str, ...]:
        """The calls that the seccomp filter brings to us."""
        return self.settings.asked

    def environment(self, inner: dict[bytes, bytes]) -> dict[bytes, bytes]:
        """*inner* with what the command may know of its window."""
        window = self.window
        if window is None:
            return inner
        inner[b"LISTENING_BASE_PORT"] = b"%d" % window.base
        inner[b"LISTENING_PORT_COUNT"] = b"%d" % window.count
        if self.settings.device is not None or self.settings.strategy == REWIRE_DEVICE:
            inner[b"LISTENING_LOOPBACK_DEVICE"] = window.device.encode("ascii")
        if self.map is not None:
            from netsandbox_interpose.library import inject

            return inject(inner, self.library)
        return inner

    def covers(self) -> tuple[tuple[str, str], ...]:
        """Files that are something else inside: the locks are nothing there, the placeholder is the map (INV-8)."""
        found = [(os.path.join(FILES, "nothing"), HOST_LOCKS)] if self._host_wide else []
        if self.map is not None:
            from netsandbox_interpose.library import PORT_MAP

            found.append((self.map.path, PORT_MAP))
            if self.settings.strategy == REWIRE_DEVICE:  # whose device is an IPv4 address: localhost is that alone
                found.append((os.path.join(FILES, "hosts-ipv4"), "/etc/hosts"))
        return tuple(found)

    def doors(self) -> tuple[plan.Door, ...]:
        """The doors of the session's localhost, beside those of the network."""
        return plan.localhost_doors(self.settings.connect_host, asking=self.map is not None)

    def stands(self) -> None:
        """The session has its mounts: the map needs no name on the host any more."""
        if self.map is not None:
            self.map.unlink()

    def close(self) -> None:
        for sockets in self.fixed.values():
            for sock in sockets:
                sock.close()
        self.fixed.clear()
        if self.map is not None:
            self.map.unlink()  # a session that never stood
            self.map.close()
        if self._window is not None:
            self._window.close()
        if self._name is not None:
            self._name.close()
        self._locks.close()

    def _take_window(self) -> HeldWindow:
        wanted = self.settings
        try:
            return take_window(
                self._locks,
                pool=wanted.pool,
                base=wanted.base,
                count=wanted.count,
                device=wanted.device,
                whole=wanted.guarded or wanted.base is not None or (wanted.count or FEW + 1) <= FEW,
            )
        except WindowError as error:
            raise HostError(str(error)) from None

    def _check_published(self) -> None:
        if self.settings.strategy != FAIL:
            return
        for port, _ in self.settings.publish or ():
            if self.window is not None and port not in self.window:
                advice = f"publish one of {self.window}, or give another --listening-base-port"
                raise UsageError(f"--publish {port}: with --network-strategy fail nothing can listen there; {advice}")

    def _bind_fixed(self) -> None:
        wanted = {port: outer for port, outer in self.settings.publish or () if outer is not None}
        if not wanted:
            return
        from netsandbox_portmap.fixed_ports import reserve
        from netsandbox_portmap.published import PublishError

        window = self.window
        assert window is not None
        for outer in wanted.values():
            if outer not in window and not self._locks.take(outer, 1):
                raise HostError(f"port {outer} belongs to another session; choose another host port for --publish")
        try:
            self.fixed = reserve(wanted, self.settings.strategy, window, device_given=self.settings.device is not None)
        except PublishError as error:
            raise HostError(str(error)) from None

    def _make_map(self, state: str) -> PortMap:
        """Loaded now, while what is on the disk can be trusted (`netsandbox.runtime.import_sealing`)."""
        from netsandbox_portmap.port_map import PortMap

        native = _native()
        window, wanted = self.window, self.settings
        assert window is not None
        any_device = wanted.strategy != REWIRE_DEVICE and wanted.device is None
        numbers = {
            FAIL: native.lib.NS_STRATEGY_FAIL,
            REWIRE_DEVICE: native.lib.NS_STRATEGY_DEVICE,
            REWIRE_PORT: native.lib.NS_STRATEGY_PORT,
        }
        try:
            path, doors = self._map_path(state), self._map_doors()
            return PortMap.create(
                native,
                path,
                strategy=numbers[wanted.strategy],
                device="0.0.0.0" if any_device else window.device,  # noqa: S104 (the map's word for any)
                window_base=window.base,
                window_count=window.count,
                **{**vars(doors), "passing": (*doors.passing, *wanted.connect_host)},
            )
        except OSError as error:
            advice = "free space there, or set XDG_STATE_HOME to a directory that can be written"
            raise HostError(f"cannot make a port map in {state}: {error.strerror}; {advice}") from None

    def _take_doors(self) -> None:
        """Nothing: the doors are made inside of the session. Where they are the host's, they are taken here."""

    def _map_path(self, state: str) -> str:
        from netsandbox_portmap.map_folder import new_path

        return new_path(state)

    def _map_doors(self) -> MapDoors:
        return MapDoors(door_ports.ASKING, (door_ports.DNS, door_ports.MIXED, door_ports.ASKING))


def _native() -> Native:
    """The compiled side of the map; the library must be there too, or nothing would be rewritten."""
    from netsandbox_interpose.library import LIBRARY

    try:
        import netsandbox_interpose._native as native
    except ImportError as error:
        raise _not_built(str(error)) from None
    if not os.path.exists(LIBRARY):
        raise _not_built(f"there is no {LIBRARY}")
    return native


def _not_built(why: str) -> HostError:
    advice = "reinstall netsandbox with a C compiler at hand, or use --rewrite-engine kernel"
    return HostError(f"the preload library cannot be used ({why}); {advice}")


def _open_locks(state: str) -> tuple[RangeLock, bool]:
    """One file for every user of this host; where that is spoilt, one for this user: a port can be bound but once."""
    try:
        return RangeLock.open(HOST_LOCKS, shared=True), True
    except OSError:
        pass
    path = os.path.join(state, "ports")
    try:
        return RangeLock.open(path, shared=False), False
    except OSError as error:
        advice = "set XDG_STATE_HOME to a directory that can be written"
        raise HostError(f"cannot lock ports in {path}: {error.strerror}; {advice}") from None
