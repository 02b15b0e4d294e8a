"""Opens the doors: connects the sockets that the backend made with the components that serve them.

Where other programs can reach the sockets too, the backend sets a password. HTTP, SOCKS5 and connections from the
preload library require it. The DNS doors do not: another program can learn there whether this policy allows a name, and
gets an address that is useless without the password.
"""

from __future__ import annotations

import _socket
import gc

from netsandbox_dns.resolv_conf import NameServers, parse_hosts, parse_resolv_conf
from netsandbox_dns.resolver import Resolver, ResolverOptions
from netsandbox_dns.synthetic_pool import SyntheticPool
from netsandbox_dns.tcp_door import TcpDoor
from netsandbox_dns.tunnel_guard import TunnelGuard
from netsandbox_dns.udp_door import UdpDoor
from netsandbox_dns.udp_recorder import UdpRecorder
from netsandbox_dns.upstream import Upstream
from netsandbox_proxy.contract import Limits
from netsandbox_proxy.door import Door, MixedDoor, TransparentDoor, original_destination

from netsandbox.session.gate import Gate, NameServices, PeerFacts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.backends.contract import DoorSockets
    from netsandbox.runtime.loop import Loop
    from netsandbox.session.upstream import HostResolver, ServiceInputs
    from netsandbox.settings import Bounds


class Doors:
    """Every door of one session. `close` closes their sockets too."""

    def __init__(self, loop: Loop, inputs: ServiceInputs, sockets: DoorSockets, bounds: Bounds) -> None:
        gc.enable()
        self._services = services = SessionServices(loop, inputs, sockets)
        gate, resolver = services.gate, services.resolver
        self.gate = gate
        limits = Limits(flows=bounds.connections, idle=bounds.idle_seconds)
        self._tcp: list[Door] = [MixedDoor(loop, gate, sock, limits, sockets.password) for sock in sockets.mixed]
        wanted = sockets.destination or original_destination
        self._tcp += [TransparentDoor(loop, gate, sock, limits, wanted) for sock in sockets.transparent]
        if inputs.inspection is not None:
            engine = inputs.inspection.open(loop, bounds.idle_seconds)
            har = inputs.inspection.har
            for door in self._tcp:
                door.engine, door.har = engine, har
                door.placeholders = inputs.inspection.placeholders
            if har is not None and inputs.policy.inspection is not None:
                har.clock, har.with_query = loop.now, inputs.policy.inspection.records_query
        self._udp: list[UdpDoor | TcpDoor | UdpRecorder] = []
        self._udp += [UdpDoor(loop, sock, resolver, bound=sockets.dns_is_bound) for sock in sockets.dns]
        self._udp += [TcpDoor(loop, sock, resolver) for sock in sockets.dns_tcp]
        self._udp += [UdpRecorder(loop, sock, gate.records.datagrams) for sock in sockets.datagrams]

    @property
    def flows(self) -> int:
        """The number of open connections."""
        return sum(door.flows for door in self._tcp)

    def settle(self) -> None:
        """Write what was counted and is in no record yet."""
        self._services.resolver.flush()
        for door in self._udp:
            if isinstance(door, UdpRecorder):
                door.flush()

    def close(self) -> None:
        """Close everything. Folded records and open connections get their final record."""
        for close in [door.close for door in self._tcp] + [door.close for door in self._udp]:
            close()
        self._services.close()


class SessionServices:
    """The gate for connections and the resolver for names, one of each per session, with what they share.

    They share the synthetic addresses, the tunnel guard's counts and the name servers, so every door treats a name the
    same way (INV-3).
    """

    def __init__(self, loop: Loop, inputs: ServiceInputs, sockets: DoorSockets) -> None:
        pool, guard = SyntheticPool(), TunnelGuard()
        upstream = self._upstream = _upstream_of(loop, inputs.resolver)
        own, attribution = sockets.own_addresses(loop.now), sockets.attribution(loop.now)
        names, peers = NameServices(upstream, pool, guard, inputs.parent), PeerFacts(own, attribution)
        self.gate = gate = Gate(inputs.policy, inputs.log, names, peers, loop.now, inputs.inbox)
        self._inbox = inputs.inbox
        options = ResolverOptions(
            (_socket.gethostname(),),
            upstream.forward,
            frozenset(inputs.policy.allow_query_types),
            inputs.log,
            None if inputs.denials is None else gate.records.denied_query(inputs.denials.add),
        )
        self.resolver = Resolver(loop, gate.decide_name, gate.records.queries, pool, guard, options)

    def close(self) -> None:
        """Close after the doors. Folded records and open questions get their final record."""
        if self._inbox is not None:
            self._inbox.close()
        self.resolver.flush()
        self._upstream.close()


def _upstream_of(loop: Loop, host: HostResolver) -> Upstream:
    """The name servers for allowed names."""
    if host.servers:
        return Upstream(loop, NameServers(list(host.servers)), {}, loop.now)
    return Upstream(loop, parse_resolv_conf(host.resolv_conf), parse_hosts(host.hosts), loop.now)
