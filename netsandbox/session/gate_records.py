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
    from collections.abc import Callable, Mapping

    from netsandbox_dns.resolver import QueryKind
    from netsandbox_dns.synthetic_pool import SyntheticPool
    from netsandbox_proxy.contract import Attempt, Grant

    from netsandbox.audit.log import AuditLog
    from netsandbox.policy.inspection import HttpRequest, RequestEnd
    from netsandbox.policy.policy import Policy
    from netsandbox.policy.verdict import Verdict

    Attribute = Callable[..., tuple[int, str] | None]


class GateRecords:
    """One per session. *attribute* finds the process of a connection."""

    def __init__(self, log: AuditLog, pool: SyntheticPool, attribute: Attribute, policy: Policy) -> None:
        self._log = log
        self._pool = pool
        self._attribute = attribute
        self._ports = policy.default_ports
        self._mode_origin = policy.mode_origin
        self._records_query = policy.inspection is not None and policy.inspection.records_query

    def _program(self, source: tuple[str, int]) -> dict[str, object]:
        """The fields of the process behind a connection. The log leaves out what is None."""
        pid, exe = self._attribute(source) or (None, None)
        return {"pid": pid, "exe": exe}

    # Connections.

    def lookup(self, attempt: Attempt, host: str, decided: Verdict) -> bool:
        """Record that a query for *host* leaves the host."""
        return self._log.write(
            "dns", verdict="allow", reason=decided.reason, rule=decided.rule, door=attempt.door, host=host
        )

    def dialling(self, grant: Grant, address: str) -> bool:
        decided = grant.verdict
        assert decided is not None  # the gate made the grant
        return self._log.write(
            "egress",
            verdict="allow",
            reason=decided.reason,
            rule=decided.rule,
            door=grant.attempt.door,
            host=grant.host,
            port=grant.port,
            address=address,
            **self._program(grant.attempt.source),
            connection=grant.inspection,
        )

    def request(self, grant: Grant, number: int, decided: Verdict, request: HttpRequest, hint: str | None) -> bool:
        """Record the verdict on a request."""
        return self._log.write(
            "http",
            verdict="allow" if decided.allowed else "deny",
            reason=decided.reason,
            rule=decided.rule,
            door=grant.attempt.door,
            host=grant.host,
            port=grant.port,
            **self._program(grant.attempt.source),
            connection=grant.inspection,
            request=number,
            scheme=request.scheme,
            method=request.method,
            path=request.target.partition("?")[0],
            query=self._query(request.target),
            secret=(request.secrets or None) if decided.allowed else None,
            hint=hint,
        )

    def _query(self, target: str) -> str | None:
        """Left out unless the user wants it, since secrets are in queries."""
        query = target.partition("?")[2] if self._records_query else ""
        if not query:
            return None
        from netsandbox.policy.redaction import shown_query

        return shown_query(query)

    def answered(self, grant: Grant, end: RequestEnd) -> None:
        self._log.write(
            "http.end",
            host=grant.host,
            port=grant.port,
            bytes_up=end.up,
            bytes_down=end.down,
            ms=end.milliseconds,
            connection=grant.inspection,
            request=end.number,
            method=end.request.method,
            path=end.request.target.partition("?")[0],
            status=end.status,
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
            connection=grant.inspection,
        )

    def refused(self, attempt: Attempt, decided: Verdict, detail: str | None) -> None:
        self._log.write(
            "egress",
            verdict="deny",
            reason=decided.reason,
            rule=decided.rule,
            door=attempt.door,
            host=decided.host,
            port=attempt.port,
            address=decided.address or attempt.address,
            **self._program(attempt.source),
            hint=flag_for(decided, self._ports),
            detail=detail,
        )

    def rejected(self, door: str, reason: str, detail: str, source: tuple[str, int]) -> None:
        program = self._program(source)
        self._log.write("egress", verdict="deny", reason=reason, door=door, detail=detail, **program)

    def fault(self, error: Exception) -> None:
        """Record an error of ours that caused a refusal."""
        self._log.write("policy", verdict="deny", reason=reasons.INTERNAL, detail=repr(error))

    # DNS queries of the session, and other UDP datagrams.

    def queries(self, kind: QueryKind, count: int, _size: int) -> bool:
        host, qtype, allowed, reason, rule = kind
        name = type_name(qtype)
        return self._log.write(
            "dns",
            verdict="allow" if allowed else "deny",
            reason=reason,
            rule=rule,
            door="dns",
            host=host,
            qtype=name,
            count=count if count > 1 else None,
            hint=None if allowed else self._query_hint(kind, name),
        )

    def denied_query(self, add: Callable[[Mapping[str, object], object], None]) -> Callable[[QueryKind, object], None]:
        """Passes on each denied query with its process. A query by TCP has no source here."""

        def pass_on(kind: QueryKind, source: object) -> None:
            found = self._attribute(source, "udp") if isinstance(source, tuple) else None
            fields = {"host": kind[0], "reason": kind[3], "hint": self._query_hint(kind, type_name(kind[1]))}
            add(fields, found[0] if found else None)

        return pass_on

    def _query_hint(self, kind: QueryKind, qtype: str) -> str | None:
        host, _, _, reason, _ = kind
        if reason == reasons.NOT_ALLOWED:  # by far the most frequent denial, and a flood of them is not slowed down
            return f"--allow-domain {host}"
        origin = self._mode_origin if reason == reasons.OFFLINE else None
        return flag_for(verdict(reason, host, 0, origin=origin), query_type=qtype)

    def datagrams(self, destination: tuple[str, int], count: int, size: int) -> bool:
        address, port = destination
        return self._log.write(
            "udp",
            verdict="deny",
            reason=reasons.UDP,
            door="udp",
            host=self._pool.name_of(address),
            port=port,
            address=address,
            bytes_up=size,
            count=count if count > 1 else None,
        )
