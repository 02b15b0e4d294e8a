"""What a session holds on the host before its command runs: a window of ports, a name, ports to publish on, a port map.

Locks and sockets of this process hold everything, so the kernel frees it however the process ends (INV-10). Anything
that cannot be held is an error now. Each backend derives its own reservation, since only it knows the doors and the
place of the port map. This module is on the path to exec, so imports are few.
"""

from __future__ import annotations

import os

from netsandbox.errors import HostError, UsageError
from netsandbox.frozen import frozen
from netsandbox_portmap import FAIL, REWIRE_DEVICE, REWIRE_PORT
from netsandbox_portmap.ranges import JoinedLocks, RangeLock
from netsandbox_portmap.window import WindowError, take_window

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable

    from netsandbox_portmap.contract import Native
    from netsandbox_portmap.localhost_settings import LocalhostSettings
    from netsandbox_portmap.port_map import PortMap
    from netsandbox_portmap.session_name import HeldName
    from netsandbox_portmap.window import HeldWindow, Window

HOST_LOCKS = "/tmp/netsandbox-ports"  # noqa: S108 (one file for all users; opened without following links)


@frozen
class MapDoors:
    """The doors in a port map, as in `PortMap.create`; 0 means none."""

    door: int
    passing: tuple[int, ...]
    egress: int = 0
    resolver: int = 0
    token: bytes | None = None


@frozen
class MapSource:
    """The inputs of a port map, besides the window."""

    native: Native
    path: str
    doors: MapDoors


class Reservation:
    """Take it before the session starts, and close it when the session has ended."""

    def __init__(self, settings: LocalhostSettings, state: str) -> None:
        self.settings = settings
        self.map: PortMap | None = None
        self.fixed: dict[int, list[_socket.socket]] = {}  # sockets bound for --publish PORT:HOSTPORT, by PORT
        self._window: HeldWindow | None = None
        self._name: HeldName | None = None
        self._locks, self.host_locks = _open_locks(state)  # host_locks: the lock file of all users, if it is used
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
        """Hold the name that the user chose. Raises an error if another session has it or it is invalid."""
        from netsandbox_portmap.session_name import check_name, hold_name

        self._name = hold_name(check_name(name), explicit=True)

    @property
    def name(self) -> str:
        """The session's name. Without a chosen one, it is made at first use from the working folder and its branch."""
        return self.default_name()

    @property
    def made_name(self) -> str | None:
        """The same if it is known already."""
        return self._name.name if self._name is not None else None

    def default_name(self, avoided: Callable[[str], bool] | None = None) -> str:
        """The same; a name that is *avoided* is not made."""
        if self._name is None:
            from netsandbox_portmap.session_name import branch_of, default_name, hold_name

            self._name = hold_name(default_name(os.curdir, branch_of(os.curdir)), explicit=False, avoided=avoided)
        return self._name.name

    @property
    def window(self) -> Window | None:
        return self._window.window if self._window is not None else None

    @property
    def by_name_port(self) -> int | None:
        """The last port of the window, unless --publish uses it; with strategy `fail` the command gets all ports."""
        window = self.window
        if window is None or window.count == 1 or self.settings.strategy == FAIL or not self.settings.publishes:
            return None
        return None if any(outer == window.last for _, outer in self.settings.publish or ()) else window.last

    def environment(self, inner: dict[bytes, bytes]) -> dict[bytes, bytes]:
        """*inner* and the variables that describe the window to the command."""
        window = self.window
        if window is None:
            return inner
        inner[b"LISTENING_BASE_PORT"] = b"%d" % window.base
        inner[b"LISTENING_PORT_COUNT"] = b"%d" % window.count
        if self.settings.device is not None or self.settings.strategy == REWIRE_DEVICE:
            inner[b"LISTENING_LOOPBACK_DEVICE"] = window.device.encode("ascii")
        return inner

    def close(self) -> None:
        for sockets in self.fixed.values():
            for sock in sockets:
                sock.close()
        self.fixed.clear()
        if self.map is not None:
            self.map.unlink()  # the session never started
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
                whole=wanted.guarded or wanted.base is not None,
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
        from netsandbox_portmap.port_map import PortMap

        window, wanted = self.window, self.settings
        assert window is not None
        any_device = wanted.strategy != REWIRE_DEVICE and wanted.device is None
        try:
            source = self._map_source(state)
            library, doors = source.native.lib, source.doors
            numbers = {
                FAIL: library.NS_STRATEGY_FAIL,
                REWIRE_DEVICE: library.NS_STRATEGY_DEVICE,
                REWIRE_PORT: library.NS_STRATEGY_PORT,
            }
            return PortMap.create(
                source.native,
                source.path,
                strategy=numbers[wanted.strategy],
                device="0.0.0.0" if any_device else window.device,  # noqa: S104 (the map's word for any)
                window_base=window.base,
                window_count=window.count,
                **{**vars(doors), "passing": (*doors.passing, *(door.inside for door in wanted.connect_host))},
            )
        except OSError as error:
            advice = "free space there, or set XDG_STATE_HOME to a directory that can be written"
            raise HostError(f"cannot make a port map in {state}: {error.strerror}; {advice}") from None

    def _take_doors(self) -> None:
        """Bind the doors, if they are sockets of the host and not of the session."""

    def _map_source(self, state: str) -> MapSource:
        """Called in sessions with the preload library, after the doors are taken."""
        raise NotImplementedError


def _open_locks(state: str) -> tuple[JoinedLocks, str | None]:
    """The lock files of all users and of this user, or one of them if the other is unusable.

    The first keeps users apart. The second keeps the sessions of one user apart even if the first was removed. A port
    can be bound only once in any case.
    """
    files: list[RangeLock] = []
    shared: str | None = HOST_LOCKS
    try:
        files.append(RangeLock.open(HOST_LOCKS, shared=True))
    except OSError:
        shared = None
    path = os.path.join(state, "ports")
    try:
        files.append(_open_own(path))
    except OSError as error:
        if not files:
            advice = "set XDG_STATE_HOME to a directory that can be written"
            raise HostError(f"cannot lock ports in {path}: {error.strerror}; {advice}") from None
    return JoinedLocks(files), shared


def _open_own(path: str) -> RangeLock:
    """OSError also if the file system has no locks, as some network file systems."""
    lock = RangeLock.open(path, shared=False)
    try:
        lock.obstacle(0, 1)
    except BaseException:
        lock.close()
        raise
    return lock
