"""Opens the doors: connects the sockets that the backend made with the components that serve them.

Where other programs can reach the sockets too, the backend sets a password. HTTP, SOCKS5 and connections from the
preload library require it. The DNS doors do not: another program can learn there whether this policy allows a name, and
gets an address that is useless without the password.
"""

from __future__ import annotations

import gc

from netsandbox_dns.tcp_door import TcpDoor
from netsandbox_dns.udp_door import UdpDoor
from netsandbox_dns.udp_recorder import UdpRecorder
from netsandbox_proxy.contract import Limits
from netsandbox_proxy.door import Door, MixedDoor, TransparentDoor

from netsandbox.session.services import SessionServices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.backends.contract import DoorSockets
    from netsandbox.runtime.loop import Loop
    from netsandbox.session.upstream import ServiceInputs
    from netsandbox.settings import Bounds


class Doors:
    """Every door of one session. `close` closes their sockets too."""

    def __init__(self, loop: Loop, inputs: ServiceInputs, sockets: DoorSockets, bounds: Bounds) -> None:
        gc.enable()
        self._services = services = SessionServices(loop, inputs, sockets)
        gate, resolver = services.gate, services.resolver
        limits = Limits(flows=bounds.connections, idle=bounds.idle_seconds)
        self._tcp: list[Door] = [MixedDoor(loop, gate, sock, limits, sockets.password) for sock in sockets.mixed]
        self._tcp += [TransparentDoor(loop, gate, sock, limits) for sock in sockets.transparent]
        self._udp: list[UdpDoor | TcpDoor | UdpRecorder] = []
        self._udp += [UdpDoor(loop, sock, resolver, bound=sockets.dns_is_bound) for sock in sockets.dns]
        self._udp += [TcpDoor(loop, sock, resolver) for sock in sockets.dns_tcp]
        self._udp += [UdpRecorder(loop, sock, gate.records.datagrams) for sock in sockets.datagrams]

    @property
    def flows(self) -> int:
        """The number of open connections."""
        return sum(door.flows for door in self._tcp)

    def close(self) -> None:
        """Close everything. Folded records and open connections get their final record."""
        for close in [door.close for door in self._tcp] + [door.close for door in self._udp]:
            close()
        self._services.close()
