"""Opens the door of a session on a Mac: HTTP and SOCKS5 on both addresses of localhost, for those who have the token.

No transparent door and no resolver: Seatbelt refuses what would need them, and the proxy looks names up itself.
"""

from __future__ import annotations

import gc

from netsandbox_dns.guard import TunnelGuard
from netsandbox_dns.pool import SyntheticPool
from netsandbox_proxy.door import MixedDoor
from netsandbox_proxy.limits import Limits

from netsandbox.doors import upstream_of
from netsandbox.gate import Gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable, Collection, Sequence

    from netsandbox_proxy.contract import Parent

    from netsandbox.audit.log import AuditLog
    from netsandbox.host_resolver import HostResolver
    from netsandbox.loop import Loop
    from netsandbox.policy.ip import Address
    from netsandbox.policy.policy import Policy


class MacDoors:
    """Serves the listening *sockets*, which it owns."""

    def __init__(
        self,
        loop: Loop,
        policy: Policy,
        log: AuditLog,
        resolver: HostResolver,
        sockets: Sequence[_socket.socket],
        *,
        token: bytes,
        own: Callable[[], Collection[Address]],
        parent: Parent | None,
    ) -> None:
        if not token:
            raise ValueError("a door on the shared loopback needs a token")
        gc.enable()
        self._upstream = upstream_of(loop, resolver)
        gate = Gate(
            policy,
            log,
            self._upstream,
            SyntheticPool(),
            TunnelGuard(),
            own=own,
            attribute=_nobody_knows,
            clock=loop.now,
            parent=parent,
        )
        limits = Limits()
        self._doors = [MixedDoor(loop, gate, sock, limits, token) for sock in sockets]

    @property
    def flows(self) -> int:
        """Connections that are still open."""
        return sum(door.flows for door in self._doors)

    def close(self) -> None:
        for door in self._doors:
            door.close()
        self._upstream.close()


def _nobody_knows(source: tuple[str, int]) -> None:
    """Which process connected is not looked up here; the token says that it is one of the session."""
