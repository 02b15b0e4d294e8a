"""Opens the doors: wires the sockets that were made inside the session to the components that serve them.

Imported when the first packet arrives, so a command that never uses the network never pays for it.
"""

from __future__ import annotations

import gc

from netsandbox_dns.tcp_door import TcpDoor
from netsandbox_dns.udp_door import UdpDoor
from netsandbox_dns.udp_recorder import UdpRecorder
from netsandbox_proxy.contract import Limits
from netsandbox_proxy.door import Door, MixedDoor, TransparentDoor

from netsandbox.backends.namespaces.attribution import Attribution
from netsandbox.backends.namespaces.own_addresses import OwnAddresses
from netsandbox.runtime.descriptor_limit import raise_descriptor_limit
from netsandbox.session.services import SessionServices

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket

    from netsandbox_proxy.contract import Parent

    from netsandbox.audit.log import AuditLog
    from netsandbox.policy.policy import Policy
    from netsandbox.runtime.loop import Loop
    from netsandbox.session.approvals.inbox import Inbox
    from netsandbox.session.host_resolver import HostResolver
    from netsandbox.settings import Bounds


class Doors:
    """Every door of one session. *sockets* are named as in `linux.plan.doors()`; *init* is the pid of its PID 1."""

    def __init__(
        self,
        loop: Loop,
        policy: Policy,
        log: AuditLog,
        resolver: HostResolver,
        sockets: dict[str, _socket.socket],
        *,
        init: int,
        parent: Parent | None,
        bounds: Bounds,
        inbox: Inbox | None = None,
    ) -> None:
        gc.enable()
        raise_descriptor_limit()
        own, attribute = OwnAddresses(loop.now), Attribution(init, loop.now)
        self._judges = judges = SessionServices(
            loop, policy, log, resolver, own=own, attribute=attribute, parent=parent, inbox=inbox
        )
        gate, limits = judges.gate, Limits(flows=bounds.connections, idle=bounds.idle_seconds)
        self._tcp: list[Door] = [MixedDoor(loop, gate, sockets[name], limits) for name in ("mixed", "mixed6")]
        self._tcp += [TransparentDoor(loop, gate, sockets[name], limits) for name in ("transparent", "transparent6")]
        self._resolving: list[UdpDoor | TcpDoor | UdpRecorder] = []
        self._resolving += [UdpDoor(loop, sockets[name], judges.resolver) for name in ("dns", "dns6")]
        self._resolving += [TcpDoor(loop, sockets[name], judges.resolver) for name in ("dns-tcp", "dns-tcp6")]
        self._resolving += [UdpRecorder(loop, sockets[name], gate.records.datagrams) for name in ("udp", "udp6")]

    @property
    def flows(self) -> int:
        """Connections that are still open."""
        return sum(door.flows for door in self._tcp)

    def close(self) -> None:
        """Close everything; what was folded or still open gets its record."""
        for close in [door.close for door in self._tcp] + [door.close for door in self._resolving]:
            close()
        self._judges.close()
