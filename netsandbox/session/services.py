"""Who judges in a session: the gate for connections, the resolver for names, and what the two share.

They know the same synthetic addresses, keep one account of what looks like a tunnel, and ask the same servers: so a
name is the same at every door (INV-3).
"""

from __future__ import annotations

import _socket

from netsandbox_dns.pool import SyntheticPool
from netsandbox_dns.resolver import Resolver, ResolverOptions
from netsandbox_dns.settings import parse_hosts, parse_resolv_conf
from netsandbox_dns.tunnel_guard import TunnelGuard
from netsandbox_dns.upstream import Upstream

from netsandbox.session.gate import Gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from netsandbox_proxy.contract import Parent

    from netsandbox.audit.log import AuditLog
    from netsandbox.policy.ip import Address
    from netsandbox.policy.policy import Policy
    from netsandbox.runtime.loop import Loop
    from netsandbox.session.approvals.inbox import Inbox
    from netsandbox.session.host_resolver import HostResolver


class SessionServices:
    """One per session. *own* and *attribute* are the gate's."""

    def __init__(
        self,
        loop: Loop,
        policy: Policy,
        log: AuditLog,
        host: HostResolver,
        *,
        own: Callable[[], Collection[Address]],
        attribute: Callable[[tuple[str, int]], tuple[int, str] | None],
        parent: Parent | None,
        inbox: Inbox | None = None,
    ) -> None:
        pool, guard = SyntheticPool(), TunnelGuard()
        upstream = self._upstream = _upstream_of(loop, host)
        self.gate = gate = Gate(
            policy,
            log,
            upstream,
            pool,
            guard,
            own=own,
            attribute=attribute,
            clock=loop.now,
            parent=parent,
            inbox=inbox,
        )
        self._inbox = inbox
        options = ResolverOptions((_socket.gethostname(),), upstream.forward, frozenset(policy.allow_query_types))
        self.resolver = Resolver(loop, gate.decide_name, gate.records.queries, pool, guard, options)

    def close(self) -> None:
        """When the doors are closed; what was folded, or waits for an answer, gets its record."""
        if self._inbox is not None:
            self._inbox.close()
        self.resolver.flush()
        self._upstream.close()


def _upstream_of(loop: Loop, host: HostResolver) -> Upstream:
    """Who is asked for names that are allowed."""
    if host.servers:
        return Upstream(loop, list(host.servers), {}, loop.now)
    found = parse_resolv_conf(host.resolv_conf)
    hosts = parse_hosts(host.hosts)
    return Upstream(loop, found.servers, hosts, loop.now, timeout=found.timeout, attempts=found.attempts)
