"""The gate for requests: decides on each request of an inspected connection, and records it before it goes on (INV-5).

Loaded by sessions that inspect. An exception is a refusal with the reason `internal` (INV-1).
"""

from __future__ import annotations

from netsandbox_proxy.contract import Refusal

from netsandbox.policy import reasons
from netsandbox.policy.explain import hint
from netsandbox.policy.inspection import request_flag, request_hint
from netsandbox.policy.verdict import verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_proxy.contract import Grant

    from netsandbox.policy.inspection import HttpRequest
    from netsandbox.policy.policy import Policy
    from netsandbox.policy.verdict import Verdict
    from netsandbox.session.gate_records import GateRecords


def judge(
    policy: Policy,
    records: GateRecords,
    grant: Grant,
    number: int,
    request: HttpRequest,
) -> Refusal | None:
    """None: the request may go on, and is recorded."""
    host, port = grant.host, grant.port
    try:
        assert policy.inspection is not None
        decided = policy.inspection.decide(host, port, request)
        if decided.allowed and grant.meter is not None and grant.meter.is_spent:
            rule = grant.meter.scarcest.rule
            decided = verdict(reasons.BUDGET, host, port, rule=rule.text, origin=rule.origin)
    except Exception as error:
        records.fault(error)
        decided = verdict(reasons.INTERNAL, host, port)
    if not records.request(grant, number, decided, request, request_flag(decided, request)):
        return _refusal(verdict(reasons.AUDIT_UNWRITABLE, host, port), request)
    if decided.reason == reasons.BUDGET and grant.meter is not None:
        return Refusal(host, port, decided.reason, grant.meter.scarcest.advice)
    return None if decided.allowed else _refusal(decided, request)


def _refusal(decided: Verdict, request: HttpRequest) -> Refusal:
    return Refusal(decided.host, decided.port, decided.reason, request_hint(decided, request) or hint(decided))
