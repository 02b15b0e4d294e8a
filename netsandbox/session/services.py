"""The services that decide in a session: the gate for connections, the resolver for names, and what the two share.

They share the synthetic addresses, the tunnel guard's counts and the name servers, so every door treats a name the same
way (INV-3).
"""

from __future__ import annotations

import _socket

from netsandbox_dns.resolv_conf import NameServers, parse_hosts, parse_resolv_conf
from netsandbox_dns.resolver import Resolver, ResolverOptions
from netsandbox_dns.synthetic_pool import SyntheticPool
from netsandbox_dns.tunnel_guard import TunnelGuard
from netsandbox_dns.upstream import Upstream

from netsandbox.session.gate import Gate, NameServices, PeerFacts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.backends.contract import DoorSockets
    from netsandbox.runtime.loop import Loop
    from netsandbox.session.upstream import HostResolver, ServiceInputs


class SessionServices:
    """The services of one session."""

    def __init__(self, loop: Loop, inputs: ServiceInputs, sockets: DoorSockets) -> None:
        pool, guard = SyntheticPool(), TunnelGuard()
        upstream = self._upstream = _upstream_of(loop, inputs.resolver)
        own, attribution = sockets.own_addresses(loop.now), sockets.attribution(loop.now)
        names, peers = NameServices(upstream, pool, guard, inputs.parent), PeerFacts(own, attribution)
        self.gate = gate = Gate(inputs.policy, inputs.log, names, peers, loop.now, inputs.inbox)
        self._inbox = inputs.inbox
        options = ResolverOptions(
            (_socket.gethostname(),), upstream.forward, frozenset(inputs.policy.allow_query_types)
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
