"""A session's localhost without a network of its own: where its servers listen on the host's loopback.

The broker asks before it binds a socket, and tells when one listens. With `rewire-device`, the default, a port keeps
its number on an address 127.x.y.z that only this session has; with `rewire-port` it becomes a port of the window; with
`fail` it must be one of the window. So nothing is forwarded: a server is published by being there. Its name is served
by the gateway, as with other backends.
"""

from __future__ import annotations

import _socket
import errno

from netsandbox_portmap import FAIL, REWIRE_DEVICE, REWIRE_PORT
from netsandbox_portmap.assignment import Assignment
from netsandbox_portmap.bind_rule import UNPRIVILEGED_PORT, WILDCARD, BindRule, rule_for
from netsandbox_portmap.host_door import HostSockets
from netsandbox_portmap.host_ports import is_free_on_host
from netsandbox_portmap.localhost_service import LocalhostService
from netsandbox_portmap.publisher import Publisher
from netsandbox_portmap.window import LOCALHOST_IPV4

from netsandbox.backends.linux.socket_diag import LISTENING, SOCK_DIAG, TCP, internet_sockets
from netsandbox.frozen import frozen
from netsandbox.policy import reasons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from netsandbox_portmap.publisher import Listening
    from netsandbox_portmap.window import Window

IP_BIND_ADDRESS_NO_PORT = 24  # linux/in.h
FIRST_PORT = "/proc/sys/net/ipv4/ip_unprivileged_port_start"  # 0 in most containers
IPV4_OF = {"::1": LOCALHOST_IPV4, "::": WILDCARD}


def is_open_to_all(port: int) -> bool:
    """Whether the host lets every program bind this port, although it is below 1024."""
    if not 0 < port < UNPRIVILEGED_PORT:
        return False
    try:
        with open(FIRST_PORT, encoding="ascii") as file:
            return port >= int(file.read())
    except (OSError, ValueError):
        return False


class HostTable:
    """The listening sockets of the host's network, in which the session's are (`contract.SocketTable`)."""

    def __init__(self) -> None:
        self._diag = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, SOCK_DIAG)

    def listening(self) -> list[tuple[str, int, str]]:
        found = internet_sockets(self._diag, TCP, LISTENING)
        return [(address.removeprefix("::ffff:"), port, inode) for address, port, inode in found]

    def ports_in_use(self, *, bound: bool) -> set[int]:
        return {port for _, port, _ in self.listening()}

    def close(self) -> None:
        self._diag.close()


class SharedSockets(HostSockets):
    """Sockets by which the session's servers are reached: those of the host. They come from 127.0.0.1, by which many
    servers know localhost; the kernel would choose the device."""

    @staticmethod
    def take(family: int, done: Callable[[_socket.socket | None], None]) -> None:
        def bound(made: _socket.socket | None) -> None:
            if made is not None and family == _socket.AF_INET:
                made.setsockopt(_socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
                made.bind((LOCALHOST_IPV4, 0))
            done(made)

        HostSockets.take(family, bound)

    def close(self) -> None:
        """Nothing is kept."""


@frozen
class OwnListener:
    """Where a server of the session is on the host: it listens there itself."""

    address: str
    port: int

    def close(self) -> None:
        """The socket is the program's."""


class DirectPublisher(Publisher):
    """Publishes servers that are on the host's loopback already."""

    def _open(self, entry: Listening) -> bool:
        entry.acceptors.append(OwnListener(*entry.targets[0]))  # type: ignore[arg-type]
        return True


class BrokerLocalhost(LocalhostService):
    """The service of one session; see `questions.Localhost`."""

    publisher_type = DirectPublisher

    def __init__(self, *arguments: Any, **more: Any) -> None:
        self._given: set[int] = set()
        super().__init__(*arguments, **more)
        reserved = () if self._reservation.by_name_port is None else (self._reservation.by_name_port,)
        self._assignment = Assignment(self._window.base, self._window.count, reserved, self._is_free)

    def _is_free(self, port: int) -> bool:
        """A guard of the broker holds each port that was given out; it is free again when nothing listens there."""
        if port in self._given:
            return port not in self._network.table.ports_in_use(bound=False)
        return is_free_on_host(port)

    @property
    def _bind_rule(self) -> BindRule:
        window = self._window
        if self._strategy == FAIL:
            return rule_for(FAIL, window, device_given=self._reservation.settings.device is not None)
        return BindRule(None, (window.device, LOCALHOST_IPV4, WILDCARD))

    @property
    def _address(self) -> str:
        """Where servers are on the host."""
        has_device = self._strategy == REWIRE_DEVICE or self._reservation.settings.device is not None
        return self._window.device if has_device else LOCALHOST_IPV4

    @property
    def _strategy(self) -> str:
        return self._reservation.settings.strategy

    @property
    def _window(self) -> Window:
        window = self._reservation.window
        assert window is not None
        return window

    def place(self, pid: int, exe: str, address: str, port: int, protocol: str) -> tuple[int, str, int]:
        """The errno, or 0 with the address and port of the host for a bind to *address* and *port*."""
        spelled = IPV4_OF.get(address, address)
        is_low = self._strategy != FAIL and is_open_to_all(port)
        refused = self._bind_rule.check(spelled, UNPRIVILEGED_PORT if is_low else port)
        fields: dict[str, object] = {"address": address, "port": port, "protocol": protocol, "exe": exe}
        if refused is not None:
            number, reason = refused
            self._repeats.note(pid, event="bind", verdict="deny", reason=reason, door="seccomp", **fields)
            self._notices.refused(self._bind_rule, address, port)
            return number, LOCALHOST_IPV4, 0
        given = self._port_for(port)
        if given is None:
            self._repeats.note(pid, event="bind", verdict="deny", reason=reasons.WINDOW_FULL, door="seccomp", **fields)
            return errno.EADDRINUSE, LOCALHOST_IPV4, 0
        if self._strategy == FAIL and not self._repeats.note(
            pid, event="bind", verdict="allow", reason=reasons.LOOPBACK, door="seccomp", **fields
        ):
            return errno.EACCES, LOCALHOST_IPV4, 0
        self._given.add(given)
        return 0, self._address, given

    def _port_for(self, port: int) -> int | None:
        if self._strategy == REWIRE_DEVICE:
            return port
        if self._assignment.full:
            self._make_room()
        if port == 0:
            return self._assignment.any_port()
        return self._assignment.assign(port) if self._strategy == REWIRE_PORT else port

    def _requested_port(self, port: int) -> int:
        if self._strategy != REWIRE_PORT:
            return port
        return self._assignment.requested_port(port) or port
