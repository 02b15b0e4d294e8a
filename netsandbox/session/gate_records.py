"""Writes the gate's records: attempts, their ends, questions and datagrams, each with the program that caused it.

Nothing is decided here. A method returns `False` if the log could not be written; the recorded action must not happen
then (INV-5).
"""

from __future__ import annotations

from netsandbox.policy import reasons
from netsandbox.policy.explain import flag_for
from netsandbox.policy.query_types import type_name
from netsandbox.policy.verdict import verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from netsandbox_dns.resolver import QueryKind
    from netsandbox_dns.synthetic_pool import SyntheticPool
    from netsandbox_proxy.contract import Attempt, Grant

    from netsandbox.audit.log import AuditLog
    from netsandbox.policy.verdict import Verdict

    Attribute = Callable[[tuple[str, int]], tuple[int, str] | None]


class GateRecords:
    """One per session. *attribute* finds the process of a connection; *ports* are those of a rule without ports."""

    def __init__(self, log: AuditLog, pool: SyntheticPool, attribute: Attribute, ports: Collection[int]) -> None:
        self._log = log
        self._pool = pool
        self._attribute = attribute
        self._ports = ports

    # Connections.

    def lookup(self, attempt: Attempt, host: str, decided: Verdict) -> bool:
        """Record that a query for *host* leaves the host."""
        return self._log.write(
            "dns", verdict="allow", reason=decided.reason, rule=decided.rule, door=attempt.door, host=host
        )

    def dialling(self, grant: Grant, address: str) -> bool:
        decided = grant.verdict
        assert decided is not None  # the gate made the grant
        pid, exe = self._attribute(grant.attempt.source) or (None, None)
        return self._log.write(
            "egress",
            verdict="allow",
            reason=decided.reason,
            rule=decided.rule,
            door=grant.attempt.door,
            host=grant.host,
            port=grant.port,
            address=address,
            pid=pid,
            exe=exe,
        )

    def ended(self, grant: Grant, address: str | None, up: int, down: int, milliseconds: int, outcome: str) -> None:
        self._log.write(
            "egress.end",
            door=grant.attempt.door,
            host=grant.host,
            port=grant.port,
            address=address,
            bytes_up=up,
            bytes_down=down,
            ms=milliseconds,
            outcome=outcome,
        )

    def refused(self, attempt: Attempt, decided: Verdict, detail: str | None) -> None:
        pid, exe = self._attribute(attempt.source) or (None, None)
        self._log.write(
            "egress",
            verdict="deny",
            reason=decided.reason,
            rule=decided.rule,
            door=attempt.door,
            host=decided.host,
            port=attempt.port,
            address=decided.address or attempt.address,
            pid=pid,
            exe=exe,
            hint=flag_for(decided, self._ports),
            detail=detail,
        )

    def rejected(self, door: str, reason: str, detail: str, source: tuple[str, int]) -> None:
        pid, exe = self._attribute(source) or (None, None)
        self._log.write("egress", verdict="deny", reason=reason, door=door, detail=detail, pid=pid, exe=exe)

    def fault(self, error: Exception) -> None:
        """Record an error of ours that caused a refusal."""
        self._log.write("policy", verdict="deny", reason=reasons.INTERNAL, detail=repr(error))

    # DNS queries of the session, and other UDP datagrams.

    def queries(self, kind: QueryKind, count: int, _size: int) -> bool:
        host, qtype, allowed, reason, rule = kind
        name = type_name(qtype)
        hint = None
        if reason == reasons.NOT_ALLOWED:  # by far the most frequent denial, and a flood of them is not slowed down
            hint = f"--allow-domain {host}"
        elif not allowed:
            hint = flag_for(verdict(reason, host, 0), query_type=name)
        return self._log.write(
            "dns",
            verdict="allow" if allowed else "deny",
            reason=reason,
            rule=rule,
            door="dns",
            host=host,
            qtype=name,
            count=count if count > 1 else None,
            hint=hint,
        )

    def datagrams(self, destination: tuple[str, int], count: int, size: int) -> bool:
        address, port = destination
        extra: dict[str, object] = {"count": count} if count > 1 else {}
        return self._log.write(
            "udp",
            verdict="deny",
            reason=reasons.UDP,
            door="udp",
            host=self._pool.name_of(address),
            port=port,
            address=address,
            bytes_up=size,
            **extra,
        )
