"""Opens the doors of a session on a Mac, on both addresses of localhost.

One is for those who have the token: HTTP, SOCKS5, and connections that the preload library brings. The other answers
DNS and asks for nothing: who comes there from elsewhere learns whether this policy allows a name, and gets an address
that is of no use without the token.
"""

from __future__ import annotations

import gc

from netsandbox_dns.tcp_door import TcpDoor
from netsandbox_dns.udp_door import UdpDoor
from netsandbox_proxy.contract import Limits
from netsandbox_proxy.door import MixedDoor

from netsandbox.backends.seatbelt.token import TOKEN_BYTES, password
from netsandbox.session.services import SessionServices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from netsandbox_proxy.contract import Parent

    from netsandbox.audit.log import AuditLog
    from netsandbox.backends.seatbelt.door_sockets import DoorSockets
    from netsandbox.policy.ip import Address
    from netsandbox.policy.policy import Policy
    from netsandbox.runtime.loop import Loop
    from netsandbox.session.approvals.inbox import Inbox
    from netsandbox.session.host_resolver import HostResolver
    from netsandbox.settings import Bounds


class MacDoors:
    """Serves the sockets, which it owns: *mixed* those that listen, *dns* both kinds."""

    def __init__(
        self,
        loop: Loop,
        policy: Policy,
        log: AuditLog,
        resolver: HostResolver,
        mixed: DoorSockets,
        dns: DoorSockets,
        *,
        token: bytes,
        own: Callable[[], Collection[Address]],
        parent: Parent | None,
        bounds: Bounds,
        inbox: Inbox | None = None,
    ) -> None:
        if len(token) != TOKEN_BYTES:
            raise ValueError("a door on the shared loopback needs a token")
        gc.enable()
        self._judges = judges = SessionServices(
            loop, policy, log, resolver, own=own, attribute=_nobody_knows, parent=parent, inbox=inbox
        )
        limits, secret = Limits(flows=bounds.connections, idle=bounds.idle_seconds), password(token)
        self._tcp = [MixedDoor(loop, judges.gate, sock, limits, secret) for sock in mixed.sockets]
        self._resolving: list[UdpDoor | TcpDoor] = []
        self._resolving += [UdpDoor(loop, sock, judges.resolver, bound=True) for sock in dns.datagrams]
        self._resolving += [TcpDoor(loop, sock, judges.resolver) for sock in dns.sockets]

    @property
    def flows(self) -> int:
        """Connections that are still open."""
        return sum(door.flows for door in self._tcp)

    def close(self) -> None:
        for close in [door.close for door in self._tcp] + [door.close for door in self._resolving]:
            close()
        self._judges.close()


def _nobody_knows(source: tuple[str, int]) -> None:
    """Which process connected is not looked up here; the token says that it is one of the session."""
