"""The gate: every TCP door brings its attempts here, and every door gets the same decision (INV-3).

An attempt passes these stages in order. The first stage that refuses ends it; a `Grant` lets the door dial.

| stage | method | refuses with | goes on with |
|---|---|---|---|
| canonical name | `_host` | bad-name | the name; for a synthetic address the name it stands for; or an address |
| policy | `_decide` | the policy's reason | its verdict; it is cached, since the policy never changes |
| budgets | `_allowed`, `_by_approval` | budget | |
| tunnel guard | `_allowed`, `_by_approval` | a reason of the guard | |
| user | `_ask` | the user's answer, or none in time | the approval; only with `--ask`, for names without a rule |
| lookup | `_look_up`, `_found` | lookup-failed, or a deny of an alias | addresses; with a parent proxy there is none |
| address check | `_checked` | the first reason, if no address passes (INV-4) | a grant for the addresses that pass |

Rules:
1. An exception in any stage is a refusal with the reason `internal` (INV-1).
2. A refusal is in the log before the door gets it, and a lookup before its query leaves the host. A grant is in the log
   before the door dials: `dialling` writes that record and returns whether it was written (INV-5).
3. `done` is called exactly once, and never inside a `try`: an error in a door must not cause a second call.

For the resolver, `decide_name` runs the first two stages only: an allowed name gets a synthetic address without a
lookup, and the other stages follow when the command connects to it. The first connection imports this module.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6

from netsandbox_dns.upstream import LookupFailed
from netsandbox_proxy.contract import Grant, Refusal

from netsandbox.frozen import frozen
from netsandbox.policy import reasons
from netsandbox.policy.decision import bad_name, is_loopback_name
from netsandbox.policy.explain import hint
from netsandbox.policy.ip import parse
from netsandbox.policy.names import BadName, canonical, host_of
from netsandbox.policy.verdict import TCP, Request, verdict
from netsandbox.session.gate_records import GateRecords

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import TypeAlias

    from netsandbox_dns.synthetic_pool import SyntheticPool
    from netsandbox_dns.tunnel_guard import TunnelGuard
    from netsandbox_dns.upstream import Resolved, Upstream
    from netsandbox_proxy.contract import Attempt, Parent

    from netsandbox.audit.log import AuditLog
    from netsandbox.policy.budgets import Account, Budgets
    from netsandbox.policy.inspection import HttpRequest, RequestEnd
    from netsandbox.policy.ip import Address
    from netsandbox.policy.names import Host
    from netsandbox.policy.policy import Policy
    from netsandbox.policy.verdict import Verdict
    from netsandbox.session.approvals.inbox import Inbox

    Done = Callable[[Grant | Refusal], None]
    Step: TypeAlias = "Grant | Refusal | ToLookUp | NeedsApproval"

MAX_KNOWN = 1024
LOOPBACK_ADDRESSES = ((AF_INET, "127.0.0.1"), (AF_INET6, "::1"))


class ToLookUp:
    """A name that the policy allows and that is not looked up yet."""

    __slots__ = ("decided", "host")

    def __init__(self, host: Host, decided: Verdict) -> None:
        self.host = host
        self.decided = decided


class NeedsApproval:
    """A name that no rule allows; the user will be asked."""

    __slots__ = ("host",)

    def __init__(self, host: Host) -> None:
        self.host = host


@frozen
class NameServices:
    """The services that gate and resolver share, and the parent proxy that resolves names instead, if there is one."""

    upstream: Upstream
    pool: SyntheticPool
    guard: TunnelGuard
    parent: Parent | None = None


@frozen
class PeerFacts:
    """Facts from the backend: the host's own addresses, and the process of a peer."""

    own_addresses: Callable[[], Collection[Address]]
    attribution: Callable[..., tuple[int, str] | None]


class Gate:
    """One per session; implements `netsandbox_proxy.contract.Gate`."""

    def __init__(
        self,
        policy: Policy,
        log: AuditLog,
        names: NameServices,
        peers: PeerFacts,
        clock: Callable[[], float],
        inbox: Inbox | None = None,
    ) -> None:
        self.policy = policy
        self.records = GateRecords(log, names.pool, peers.attribution, policy)
        self._upstream = names.upstream
        self._pool = names.pool
        self._guard = names.guard
        self._own = peers.own_addresses
        self._attribute = peers.attribution
        self._clock = clock
        self._parent = names.parent
        self._inbox = inbox  # None: the user is not asked
        # Earlier decisions. The policy does not change, so the decision for a spelling does not either.
        self._known: dict[tuple[bytes, int], tuple[Host, Verdict]] = {}
        self._passed: dict[tuple[str, str, int], Verdict] = {}
        self._passed_under: Collection[Address] | None = None
        self._connections = 0  # inspected so far
        self.budgets = _budgets_of(policy)

    # Used by the TCP doors.

    def admit(self, attempt: Attempt, done: Done) -> None:
        """Decide, and call *done* once (rule 3)."""
        self._settle(attempt, lambda: self._decide(attempt), done)

    def _settle(self, attempt: Attempt, step: Callable[[], Step], done: Done) -> None:
        try:
            outcome = step()
        except Exception as error:
            outcome = self._refuse(attempt, self._internal(attempt, error))
        if isinstance(outcome, NeedsApproval):
            self._ask(attempt, outcome.host, done)
        elif isinstance(outcome, ToLookUp):
            self._look_up(attempt, outcome, done)
        else:
            done(outcome)

    def dialling(self, grant: Grant, address: str) -> bool:
        return self.records.dialling(grant, address)

    def refuse(self, grant: Grant, reason: str, detail: str | None = None) -> Refusal:
        if reason == reasons.BUDGET and grant.meter is not None:
            return self._over_budget(grant.attempt, grant.host, grant.meter.scarcest)
        return self._refuse(grant.attempt, verdict(reason, grant.host, grant.port), detail)

    def judge(self, grant: Grant, number: int, request: HttpRequest) -> Refusal | None:
        from netsandbox.session.request_gate import judge

        return judge(self.policy, self.records, grant, number, request)

    def answered(self, grant: Grant, end: RequestEnd) -> None:
        self.records.answered(grant, end)

    def _completed(self, grant: Grant) -> Grant:
        """The grant, with a number if requests in its connection are decided on, and a meter if it has a budget."""
        inspection = self.policy.inspection
        if self.budgets is not None:
            grant.meter = self.budgets.meter(grant.host, grant.port)
        if inspection is not None and grant.named and inspection.covers(grant.host, grant.port):
            self._connections += 1
            grant.inspection = self._connections
        return grant

    def reject(self, door: str, reason: str, detail: str, source: tuple[str, int]) -> None:
        self.records.rejected(door, reason, detail, source)

    def ended(self, grant: Grant, address: str | None, up: int, down: int, milliseconds: int, outcome: str) -> None:
        self.records.ended(grant, address, up, down, milliseconds, outcome)

    # Used by the resolver.

    def decide_name(self, name: bytes) -> Verdict:
        try:
            host = canonical(name)
        except BadName:
            return bad_name(name, 0)
        decided = self.policy.decide_query(host)
        if self._inbox is not None and self._may_ask(host, decided):
            return self._provisional(host)
        return decided

    # The stages of one attempt.

    def _decide(self, attempt: Attempt) -> Step:
        port = attempt.port
        known = self._known.get((attempt.host, port)) if attempt.address is None else None
        if known is None:
            try:
                host = self._host(attempt)
            except BadName:
                return self._refuse(attempt, bad_name(attempt.host, port))
            known = host, self.policy.decide(Request(host, port, TCP))
            if attempt.address is None and len(self._known) < MAX_KNOWN:
                self._known[attempt.host, port] = known
        host, decided = known
        if decided.allowed:
            return self._allowed(attempt, host, decided)
        return self._by_approval(attempt, host) if self._may_ask(host, decided) else self._refuse(attempt, decided)

    def _allowed(self, attempt: Attempt, host: Host, decided: Verdict) -> Step:
        port = attempt.port
        spent = self._spent(host, port)
        if spent is not None:
            return self._over_budget(attempt, host.text, spent)
        tunnel = self._guard.admit(host.text, decided.wildcard, self._clock())
        if tunnel is not None:
            return self._refuse(attempt, verdict(tunnel, host.text, port, rule=decided.rule))
        if host.address is not None:
            family = AF_INET if host.address.version == 4 else AF_INET6
            return self._checked(attempt, host, decided, [(family, host.address.text)])
        if is_loopback_name(host.text):
            return self._checked(attempt, host, decided, LOOPBACK_ADDRESSES)
        if self._parent is not None:
            return self._completed(Grant(attempt, host.text, (), named=True, parent=self._parent, verdict=decided))
        return ToLookUp(host, decided)

    def _spent(self, host: Host, port: int) -> Account | None:
        return None if self.budgets is None else self.budgets.spent(host.text, port)

    def _look_up(self, attempt: Attempt, pending: ToLookUp, done: Done) -> None:
        """The query leaves the host, so its record is written first (INV-5)."""
        name = pending.host.text
        answered = False

        def found(result: Resolved | LookupFailed) -> None:
            nonlocal answered
            answered = True
            done(self._found(attempt, pending.host, pending.decided, result))

        try:
            refused = None if self._upstream.knows(name) else self._before_query(attempt, pending)
            if refused is None:
                self._upstream.lookup(name, found)
                return
            refusal = self._refuse(attempt, verdict(refused, name, attempt.port, rule=pending.decided.rule))
        except Exception as error:
            if answered:
                raise
            refusal = self._refuse(attempt, self._internal(attempt, error))
        done(refusal)

    def _before_query(self, attempt: Attempt, pending: ToLookUp) -> str | None:
        """Charge and record a query that reaches a server; the reason why it must not leave, or None."""
        tunnel = self._guard.charge(pending.decided.wildcard, self._clock())
        if tunnel is not None:
            return tunnel
        recorded = self.records.lookup(attempt, pending.host.text, pending.decided)
        return None if recorded else reasons.AUDIT_UNWRITABLE

    def _host(self, attempt: Attempt) -> Host:
        """The target of the attempt: the name behind its synthetic address, its address, or its name."""
        if attempt.address is None:
            return canonical(attempt.host)
        name = self._pool.name_of(attempt.address)
        if name is not None:
            return canonical(name)
        address = parse(attempt.address)
        if address is None:
            raise BadName(attempt.address)
        return host_of(address)

    def _found(self, attempt: Attempt, host: Host, decided: Verdict, found: Resolved | LookupFailed) -> Grant | Refusal:
        try:
            if isinstance(found, LookupFailed):
                return self._refuse(attempt, verdict(reasons.LOOKUP_FAILED, host.text, attempt.port), found.reason)
            for alias in found.chain:
                denied = self.policy.denies_name(canonical(alias), attempt.port)
                if denied is not None:
                    return self._refuse(attempt, denied)
            return self._checked(attempt, host, decided, found.addresses)
        except Exception as error:
            return self._refuse(attempt, self._internal(attempt, error))

    def _checked(
        self, attempt: Attempt, host: Host, decided: Verdict, addresses: Collection[tuple[int, str]]
    ) -> Grant | Refusal:
        """Keep the addresses that pass (INV-4). If none passes, the reason is that of the first."""
        passed: list[tuple[int, str]] = []
        failed: Verdict | None = None
        for family, text in addresses:
            checked = self._check(host, text, attempt.port)
            if checked.allowed:
                passed.append((family, text))
            else:
                failed = failed or checked
        if not passed:
            return self._refuse(attempt, failed or verdict(reasons.LOOKUP_FAILED, host.text, attempt.port))
        return self._completed(Grant(attempt, host.text, passed, named=host.address is None, verdict=decided))

    def _check(self, host: Host, text: str, port: int) -> Verdict:
        """`Policy.check_address`, cached while the host's own addresses stay the same."""
        own = self._own()
        if own is not self._passed_under or len(self._passed) >= MAX_KNOWN:
            self._passed, self._passed_under = {}, own
        key = (host.text, text, port)
        checked = self._passed.get(key)
        if checked is None:
            address = parse(text)
            if address is None:
                return verdict(reasons.LOOKUP_FAILED, host.text, port)
            checked = self._passed[key] = self.policy.check_address(host, address, port, own)
        return checked

    # Sessions that ask.

    def _may_ask(self, host: Host, decided: Verdict) -> bool:
        inbox = self._inbox
        return inbox is not None and not decided.allowed and inbox.is_askable(host, decided)

    def _provisional(self, host: Host) -> Verdict:
        """A verdict for the resolver: the program gets a synthetic address, and its connection waits for the user. No
        name server gets a query for the name before the user approves it.
        """
        assert self._inbox is not None
        return verdict(reasons.ASK, host.text, 0, allowed=True, wildcard=self._inbox.owner_of(host.text))

    def _by_approval(self, attempt: Attempt, host: Host) -> Step:
        assert self._inbox is not None
        name, port = host.text, attempt.port
        spent = self._spent(host, port)
        if spent is not None:  # the user is not asked
            return self._over_budget(attempt, name, spent)
        tunnel = self._guard.admit(name, self._inbox.owner_of(name), self._clock())
        if tunnel is not None:
            return self._refuse(attempt, verdict(tunnel, name, port))
        answer = self._inbox.answer_for(name, port)
        if answer is None:
            return NeedsApproval(host)
        if answer == reasons.APPROVED:
            return self._allowed(attempt, host, verdict(answer, name, port, allowed=True))
        return self._refuse(attempt, verdict(answer, name, port))

    def _ask(self, attempt: Attempt, host: Host, done: Done) -> None:
        name, port = host.text, attempt.port

        def answered(reason: str, detail: str | None) -> None:
            if reason == reasons.APPROVED:
                approved = verdict(reason, name, port, allowed=True)
                self._settle(attempt, lambda: self._allowed(attempt, host, approved), done)
            else:
                done(self._refuse(attempt, verdict(reason, name, port), detail))

        try:
            assert self._inbox is not None
            reason = self._inbox.ask((name, port), attempt, self._attribute(attempt.source), answered)
            if reason is None:
                return
            refusal = self._refuse(attempt, verdict(reason, name, port))
        except Exception as error:
            refusal = self._refuse(attempt, self._internal(attempt, error))
        done(refusal)

    # Refusals.

    def _refuse(self, attempt: Attempt, decided: Verdict, detail: str | None = None) -> Refusal:
        self.records.refused(attempt, decided, detail)
        return Refusal(decided.host, attempt.port, decided.reason, hint(decided, self.policy.default_ports))

    def _over_budget(self, attempt: Attempt, host: str, spent: Account) -> Refusal:
        rule = spent.rule
        refused = verdict(reasons.BUDGET, host, attempt.port, rule=rule.text, origin=rule.origin)
        self.records.refused(attempt, refused, spent.used)
        return Refusal(host, attempt.port, reasons.BUDGET, spent.advice)

    def _internal(self, attempt: Attempt, error: Exception) -> Verdict:
        self.records.fault(error)
        return verdict(reasons.INTERNAL, attempt.host.decode("ascii", "backslashreplace"), attempt.port)


def _budgets_of(policy: Policy) -> Budgets | None:
    if not policy.budgets:
        return None
    from netsandbox.policy.budgets import Budgets

    return Budgets(policy.budgets)
