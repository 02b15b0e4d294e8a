"""The gate records a refusal before it returns it, refuses on any exception, and grants only checked addresses."""

from __future__ import annotations

from socket import inet_ntoa
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_dns.tunnel_guard import TunnelGuard
from netsandbox_dns.upstream import LookupFailed
from netsandbox_proxy.contract import Attempt, Parent, Refusal

from netsandbox.policy import reasons
from netsandbox.policy.ip import parse
from netsandbox.policy.names import canonical
from netsandbox.policy.policy import Policy
from netsandbox.policy.verdict import TCP, Request
from netsandbox.session.gate import AF_INET, AF_INET6
from tests.rig.gate_bench import SOURCE, Bench, found

POLICY = Policy(["example.com", "*.wild.test"], ["bad.wild.test"], ["192.0.2.0/24:443"])


class TestOrder:
    """INV-5."""

    def test_a_refusal_is_in_the_log_before_the_door_hears_of_it(self) -> None:
        bench = Bench(POLICY)
        refusal = bench.admit(b"denied.test")
        assert isinstance(refusal, Refusal)
        assert bench.order == ["egress", "done"]
        assert (
            bench.records[0] | {"verdict": "deny", "reason": "not-allowed", "host": "denied.test"} == bench.records[0]
        )
        assert bench.records[0]["hint"] == "--allow-domain denied.test"

    def test_nothing_is_looked_up_for_a_name_that_is_denied(self) -> None:
        bench = Bench(POLICY, {"denied.test": found("203.0.113.1")})
        for name in (b"denied.test", b"bad.wild.test", b"evil\0.example.com", b"example.com:443", b""):
            assert isinstance(bench.admit(name), Refusal)
        assert "lookup" not in bench.order

    def test_a_grant_is_recorded_when_it_is_dialled_and_not_before(self) -> None:
        bench = Bench(POLICY, {"example.com": found("203.0.113.1")})
        grant = bench.admit(b"example.com")
        assert bench.order == ["dns", "lookup", "done"]
        assert bench.gate.dialling(grant, "203.0.113.1") is True
        record = bench.records[-1]
        assert (record["verdict"], record["address"], record["rule"]) == ("allow", "203.0.113.1", "example.com")

    def test_a_record_that_cannot_be_written_forbids_the_dialling(self) -> None:
        """INV-1."""
        bench = Bench(POLICY, {"example.com": found("203.0.113.1")})
        grant = bench.admit(b"example.com")
        bench.log.writable = False
        assert bench.gate.dialling(grant, "203.0.113.1") is False
        assert isinstance(bench.admit(b"denied.test"), Refusal)  # a refusal needs no log

    def test_a_question_to_the_world_has_its_record_first_or_is_not_asked(self) -> None:
        bench = Bench(POLICY, {"example.com": found("203.0.113.1")})
        bench.log.writable = False
        assert bench.admit(b"example.com").reason == "audit-unwritable"
        assert "lookup" not in bench.order
        bench.log.writable = bench.upstream.known = True  # a known name needs no query
        assert bench.admit(b"example.com").allowed
        assert bench.order[-2:] == ["lookup", "done"]
        assert "dns" not in bench.order


class TestCheckedIsDialled:
    """INV-2 and INV-4."""

    @pytest.mark.parametrize("spelling", [b"example.com", b"EXAMPLE.com", b"example.com.", b"ExAmPlE.CoM."])
    def test_every_spelling_becomes_one_name(self, spelling: bytes) -> None:
        bench = Bench(POLICY, {"example.com": found("203.0.113.1")})
        grant = bench.admit(spelling)
        assert (grant.host, grant.port, grant.named) == ("example.com", 443, True)
        assert ("lookup", "example.com") in bench.story

    def test_only_addresses_that_passed_are_granted(self) -> None:
        table = {"example.com": found("10.0.0.1", "203.0.113.1", "127.0.0.1", "::1", "2001:db8::1", "not-an-address")}
        grant = Bench(POLICY, table).admit(b"example.com")
        assert grant.addresses == [(AF_INET, "203.0.113.1"), (AF_INET6, "2001:db8::1")]

    @pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "fd00::1"])
    def test_a_name_that_leads_only_inside_is_refused(self, address: str) -> None:
        bench = Bench(POLICY, {"example.com": found(address)})
        refusal = bench.admit(b"example.com")
        assert refusal.reason == "address-guard"
        assert bench.order[-3:] == ["lookup", "egress", "done"]
        assert bench.records[-1]["address"]

    def test_the_hosts_own_addresses_are_inside_as_soon_as_they_are_known(self) -> None:
        bench = Bench(POLICY, {"example.com": found("203.0.113.9")})
        assert bench.admit(b"example.com").allowed
        own = parse("203.0.113.9")
        assert own is not None
        bench.own = frozenset({own})
        assert bench.admit(b"example.com").reason == "address-guard"
        bench.own = frozenset()
        assert bench.admit(b"example.com").allowed

    def test_a_lookup_without_any_address_is_refused(self) -> None:
        assert Bench(POLICY, {"example.com": found()}).admit(b"example.com").reason == "lookup-failed"
        assert Bench(POLICY, {"example.com": found("nonsense")}).admit(b"example.com").reason == "lookup-failed"

    @pytest.mark.parametrize("why", ["nxdomain", "servfail", "timeout", "empty", "loop"])
    def test_a_lookup_that_fails_is_refused_and_says_how(self, why: str) -> None:
        bench = Bench(POLICY, {"example.com": LookupFailed(why)})
        assert bench.admit(b"example.com").reason == "lookup-failed"
        assert bench.records[-1]["detail"] == why

    def test_an_alias_that_is_denied_ends_the_chain(self) -> None:
        table = {"example.com": found("203.0.113.1", chain=("cdn.test", "bad.wild.test"))}
        bench = Bench(POLICY, table)
        refusal = bench.admit(b"example.com")
        assert (refusal.reason, refusal.host) == ("deny-rule", "bad.wild.test")

    @pytest.mark.attack(67)
    @pytest.mark.parametrize(("port", "reason"), [(443, "deny-rule"), (80, "rule")])
    def test_a_deny_rule_with_a_port_holds_for_an_alias_at_that_port(self, port: int, reason: str) -> None:
        """INV-6."""
        table = {"example.com": found("203.0.113.1", chain=("cdn.test", "bad.test"))}
        bench = Bench(Policy(["example.com"], ["bad.test:443"]), table)
        admitted = bench.admit(b"example.com", port)
        assert admitted.allowed is (reason == "rule")
        assert admitted.allowed or (admitted.reason, admitted.host) == (reason, "bad.test")

    def test_an_alias_that_is_no_name_is_a_refusal(self) -> None:
        table = {"example.com": found("203.0.113.1", chain=("bad name",))}
        assert Bench(POLICY, table).admit(b"example.com").reason == "internal"

    def test_an_allowed_address_needs_no_lookup_and_no_name(self) -> None:
        bench = Bench(POLICY)
        grant = bench.admit(b"192.0.2.7")
        assert (grant.addresses, grant.named) == ([(AF_INET, "192.0.2.7")], False)
        assert bench.order == ["done"]
        assert bench.admit(b"192.0.2.7", 80).reason == "address-literal"

    def test_localhost_through_a_door_is_the_hosts_and_needs_an_address_rule(self) -> None:
        assert Bench(POLICY).admit(b"localhost").reason == "address-guard"
        policy = Policy(["example.com"], (), ["127.0.0.1:443"])
        grant = Bench(policy).admit(b"localhost")
        assert grant.addresses == [(AF_INET, "127.0.0.1")]


class TestTransparent:
    def test_a_synthetic_address_stands_for_its_name(self) -> None:
        bench = Bench(POLICY, {"example.com": found("203.0.113.1")})
        synthetic = inet_ntoa(bench.pool.address_of("example.com"))
        grant = bench.admit(synthetic.encode(), door="transparent", address=synthetic)
        assert (grant.host, grant.addresses) == ("example.com", [(AF_INET, "203.0.113.1")])

    def test_a_synthetic_address_that_was_never_given_out_is_an_address_like_any_other(self) -> None:
        bench = Bench(Policy(["example.com"]))
        assert bench.admit(b"198.18.9.9", door="transparent", address="198.18.9.9").reason == "address-guard"

    @pytest.mark.parametrize("address", ["203.0.113.1", "2001:db8::1", "::ffff:203.0.113.1"])
    def test_any_other_address_is_judged_as_a_literal(self, address: str) -> None:
        refusal = Bench(POLICY).admit(address.encode(), door="transparent", address=address)
        assert refusal.reason == "address-literal"

    def test_what_the_kernel_could_not_name_is_refused(self) -> None:
        assert Bench(POLICY).admit(b"unknown", door="transparent", address="unknown").reason == "bad-name"


def broken(*arguments: Any, **named: Any) -> Any:
    raise RuntimeError("broken")


class Broken:
    """Replaces a part and fails at every use."""

    def __getattr__(self, name: str) -> Any:
        return broken


class TestFailsClosed:
    """INV-1: for any exception on the way, the result is one refusal, with the reason `internal` and a record."""

    def only_refusal(self, bench: Bench, host: bytes = b"example.com") -> None:
        refusal = bench.admit(host)
        assert isinstance(refusal, Refusal)
        assert refusal.reason == "internal"
        assert bench.order.count("done") == 1
        assert bench.order[-1] == "done"
        assert any("broken" in str(record.get("detail")) for record in bench.records)
        assert not any(event == "egress" and f["verdict"] == "allow" for event, f in bench.story if event != "lookup")

    def test_a_policy_that_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Policy, "decide", broken)
        self.only_refusal(Bench(POLICY))

    def test_an_address_check_that_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Policy, "check_address", broken)
        self.only_refusal(Bench(POLICY, {"example.com": found("203.0.113.1")}))

    def test_a_judgement_of_aliases_that_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        bench = Bench(POLICY, {"example.com": found("203.0.113.1", chain=("alias.test",))})
        name = canonical(b"example.com")
        decided = name, POLICY.decide(Request(name, 443, TCP))
        monkeypatch.setattr(Policy, "denies_name", broken)
        bench.gate._known[b"example.com", 443] = decided  # `decide` uses the deny list too, and must not fail here
        self.only_refusal(bench)

    def test_a_lookup_that_fails_to_start(self) -> None:
        bench = Bench(POLICY)
        bench.upstream.lookup = broken  # type: ignore[method-assign]
        self.only_refusal(bench)

    @pytest.mark.parametrize("part", [{"guard": Broken()}, {"clock": broken}, {"own": broken}])
    def test_a_guard_a_clock_or_a_list_of_own_addresses_that_fails(self, part: dict[str, Any]) -> None:
        self.only_refusal(Bench(POLICY, {"example.com": found("203.0.113.1")}, **part))

    def test_a_pool_that_fails(self) -> None:
        bench = Bench(POLICY)
        bench.gate._pool = Broken()  # type: ignore[assignment]
        refusal = bench.admit(b"198.18.0.1", door="transparent", address="198.18.0.1")
        assert refusal.reason == "internal"

    def test_a_door_that_fails_is_not_answered_twice(self) -> None:
        bench = Bench(POLICY, {"example.com": found("203.0.113.1")})
        heard: list[Any] = []

        def door(outcome: Any) -> None:
            heard.append(outcome)
            raise RuntimeError("the door's own mistake")

        for host in (b"example.com", b"denied.test"):
            heard.clear()
            with pytest.raises(RuntimeError, match="own mistake"):
                bench.gate.admit(Attempt("connect", host, 443, SOURCE), door)
            assert len(heard) == 1

    def test_an_answer_that_comes_later_is_judged_when_it_comes(self) -> None:
        bench = Bench(POLICY, {"example.com": None})
        assert bench.admit(b"example.com") is None
        bench.upstream.waiting[0](found("127.0.0.1"))
        assert bench.story[-1][1].reason == "address-guard"


class TestTunnelGuard:
    def test_it_is_asked_for_names_under_a_wildcard(self) -> None:
        bench = Bench(POLICY, {"www.wild.test": found("203.0.113.1")})
        assert bench.admit(b"www.wild.test").allowed
        refusal = bench.admit(b"a" * 60 + b".wild.test")
        assert refusal.reason == "tunnel-label"
        assert bench.order.count("lookup") == 1

    @pytest.mark.attack(232)
    def test_each_lookup_that_reaches_a_server_is_charged_and_no_other(self) -> None:
        bench = Bench(POLICY, {"a.wild.test": found("203.0.113.1")}, guard=TunnelGuard(lookups=2))
        assert [bench.admit(b"a.wild.test").allowed for _ in range(2)] == [True, True]
        assert bench.admit(b"a.wild.test").reason == "tunnel-rate"
        assert bench.order.count("lookup") == 2
        bench.upstream.known = True  # the answer is in the cache
        assert bench.admit(b"a.wild.test").allowed

    def test_it_is_asked_each_time_although_verdicts_are_remembered(self) -> None:
        bench = Bench(POLICY, guard=TunnelGuard(names=1))
        bench.admit(b"a.wild.test")
        assert bench.admit(b"b.wild.test").reason == "tunnel-rate"
        assert bench.admit(b"b.wild.test").reason == "tunnel-rate"


def test_a_parent_proxy_gets_allowed_names_unresolved_and_neither_addresses_nor_loopback() -> None:
    parent = Parent([(AF_INET, "192.0.2.99")], 3128, b"Basic x")
    bench = Bench(Policy(["example.com"], (), ["192.0.2.7:443", "127.0.0.1:443"]), parent=parent)
    grant = bench.admit(b"example.com")
    assert (grant.parent, grant.addresses, grant.named) == (parent, (), True)
    assert isinstance(bench.admit(b"denied.test"), Refusal)
    assert [bench.admit(host).parent for host in (b"192.0.2.7", b"localhost")] == [None, None]
    assert "lookup" not in bench.order


class TestLaterWords:
    def test_a_denial_found_later_is_recorded_with_its_reason(self) -> None:
        bench = Bench(POLICY, {"example.com": found("203.0.113.1")})
        refusal = bench.gate.refuse(bench.admit(b"example.com"), reasons.SNI_MISMATCH)
        assert refusal.reason == "sni-mismatch"
        assert bench.records[-1]["verdict"] == "deny"

    def test_what_never_became_an_attempt_is_recorded_too(self) -> None:
        bench = Bench(POLICY)
        bench.gate.reject("mixed", "malformed", "no HTTP", SOURCE)
        assert bench.records == [
            {"verdict": "deny", "reason": "malformed", "door": "mixed", "detail": "no HTTP"} | bench.records[0]
        ]

    def test_the_end_carries_bytes_and_time(self) -> None:
        bench = Bench(POLICY, {"example.com": found("203.0.113.1")})
        bench.gate.ended(bench.admit(b"example.com"), "203.0.113.1", 1, 2, 3, "tls")
        record = bench.records[-1]
        assert (record["bytes_up"], record["bytes_down"], record["ms"], record["outcome"]) == (1, 2, 3, "tls")


class TestQuestions:
    def test_the_resolver_hears_what_the_doors_would_hear(self) -> None:
        """INV-3."""
        gate = Bench(POLICY).gate
        assert gate.decide_name(b"example.com").allowed
        assert gate.decide_name(b"EXAMPLE.com").host == "example.com"
        assert gate.decide_name(b"a.wild.test").wildcard == "wild.test"
        assert gate.decide_name(b"denied.test").reason == "not-allowed"
        assert gate.decide_name(b"bad.wild.test").reason == "deny-rule"
        assert gate.decide_name(b"127.0.0.1").reason == "address-literal"
        assert gate.decide_name(b"localhost").reason == "loopback"
        assert gate.decide_name(b"evil\0.example.com").reason == "bad-name"


@given(st.binary(max_size=300), st.integers(-1, 70000))
def test_no_bytes_raise_and_none_are_granted_but_the_allowed(host: bytes, port: int) -> None:
    """INV-11: a denial is a value. Attack 2, 3 and 20 with thousands of inputs."""
    bench = Bench(Policy(["example.com"]), {"example.com": found("203.0.113.1")})
    outcome = bench.admit(host, port)
    assert outcome is not None
    if outcome.allowed:
        assert host.lower().rstrip(b".") == b"example.com"
        assert port in (80, 443)
    else:
        assert outcome.reason in reasons.ALL - reasons.ALLOWING
        assert outcome.host.isascii()
        assert outcome.host.isprintable()
