"""A gate that asks: an approval comes after the policy's refusal and before all other checks, and replaces only it."""

from __future__ import annotations

from socket import inet_ntoa
from typing import Any

import pytest
from netsandbox_dns.tunnel_guard import TunnelGuard
from netsandbox_proxy.contract import Parent, Refusal

from netsandbox.policy.policy import Policy
from netsandbox.session.approvals import inbox
from netsandbox.session.approvals.reply import ONCE
from tests.rig.gate_bench import Bench, found
from tests.rig.inbox_bench import InboxBench

POLICY = Policy(["example.com", "*.wild.test"], ["bad.test", "**.worse.test"], mode="filtered")
NOTHING = Policy(mode="filtered")
A = 1
TXT = 16


class Asking(Bench):
    """A gate and its inbox, with one log and one clock."""

    def __init__(self, policy: Policy = POLICY, table: dict[str, Any] | None = None, **changes: Any) -> None:
        self.box = InboxBench()
        super().__init__(policy, table, inbox=self.box.inbox, clock=lambda: self.box.now, **changes)
        self.box.story = self.story
        self.box.log = self.log
        self.box.inbox._log = self.log  # type: ignore[assignment]

    @property
    def outcomes(self) -> list[Any]:
        return [fields for event, fields in self.story if event == "done"]


TABLE = {"asked.test": found("203.0.113.1"), "inner.test": found("10.0.0.1"), "loop.test": found("127.0.0.1")}


@pytest.mark.parametrize("policy", [POLICY, NOTHING])
def test_a_yes_is_followed_by_everything_that_follows_a_rule(policy: Policy) -> None:
    bench = Asking(policy, TABLE)
    assert bench.admit(b"asked.test") is None
    assert bench.order == ["approval"]  # no query for the name left the host
    bench.box.approve()
    bench.box.pass_time()
    assert bench.order == ["approval", "approval", "dns", "lookup", "done"]
    (grant,) = bench.outcomes
    assert (grant.host, grant.named, [text for _, text in grant.addresses]) == ("asked.test", True, ["203.0.113.1"])
    assert bench.gate.dialling(grant, "203.0.113.1")
    assert bench.records[-1]["reason"] == "approved"
    again = bench.admit(b"ASKED.test.")
    assert again.allowed
    assert len(bench.box.lines) == 1


@pytest.mark.parametrize("name", ["inner.test", "loop.test"])
def test_an_address_that_is_guarded_stays_closed(name: str) -> None:
    bench = Asking(POLICY, TABLE)
    bench.admit(name.encode())
    bench.box.approve()
    bench.box.pass_time()
    (refusal,) = bench.outcomes
    assert refusal.reason == "address-guard"


def test_an_alias_that_is_denied_stays_closed() -> None:
    bench = Asking(POLICY, {"asked.test": found("203.0.113.1", chain=("a.worse.test",))})
    bench.admit(b"asked.test")
    bench.box.approve()
    bench.box.pass_time()
    (refusal,) = bench.outcomes
    assert refusal.reason == "deny-rule"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (b"bad.test", "deny-rule"),
        (b"a.worse.test", "deny-rule"),
        (b"dns.google", "doh-endpoint"),
        (b"192.0.2.7", "address-literal"),
        (b"127.0.0.1", "address-guard"),
        (b"localhost", "address-guard"),
        (b"evil\0.test", "bad-name"),
        (b"bad_port:443", "bad-name"),
        (b"x" * 60 + b".data.test", "tunnel-label"),
    ],
)
def test_what_something_speaks_against_is_refused_at_once_and_never_asked(name: bytes, reason: str) -> None:
    bench = Asking()
    refusal = bench.admit(name)
    assert isinstance(refusal, Refusal)
    assert refusal.reason == reason
    assert bench.box.lines == []
    assert "approval" not in bench.order


def test_many_new_names_below_one_domain_are_not_asked() -> None:
    bench = Asking(guard=TunnelGuard(names=3))
    for turn in range(3):
        assert bench.admit(b"n%d.data.test" % turn) is None
    assert bench.admit(b"n3.data.test").reason == "tunnel-rate"
    assert bench.admit(b"n0.data.test") is None


@pytest.mark.attack(18)
def test_18_nothing_is_admitted_by_a_yes_that_has_ended() -> None:
    """One attempt each second, across the expiry: a spelling that was decided before is decided again."""
    bench = Asking(POLICY, TABLE)
    bench.admit(b"asked.test")
    bench.box.approve(ttl=50)
    granted = []
    for _ in range(100):
        granted.append(getattr(bench.admit(b"asked.test"), "allowed", False))
        bench.box.pass_time(0.999)
    assert granted == [True] * 51 + [False] * 49
    bench.box.deny()
    bench.box.pass_time()
    assert bench.admit(b"asked.test").reason == "denied-by-user"
    assert not any(outcome.allowed for outcome in bench.outcomes[-49:])


def test_without_an_inbox_nothing_waits() -> None:
    assert Bench(POLICY, TABLE).admit(b"asked.test").reason == "not-allowed"


def test_what_is_allowed_is_not_asked() -> None:
    bench = Asking(POLICY, {"example.com": found("203.0.113.1")})
    assert bench.admit(b"example.com").allowed
    assert bench.box.lines == []


def test_a_no_is_recorded_said_and_remembered() -> None:
    bench = Asking(POLICY, TABLE)
    bench.admit(b"asked.test")
    bench.box.deny()
    bench.box.pass_time()
    assert bench.order == ["approval", "approval", "egress", "done"]
    assert bench.outcomes[0].reason == "denied-by-user"
    assert bench.admit(b"asked.test").reason == "denied-by-user"
    assert bench.admit(b"asked.test", 80) is None  # another port is another question
    assert "lookup" not in bench.order


def test_silence_is_a_no() -> None:
    bench = Asking(POLICY, TABLE)
    bench.admit(b"asked.test")
    bench.box.pass_time(59)
    assert bench.outcomes == []
    bench.box.pass_time(1)
    assert bench.outcomes[0].reason == "unanswered"
    assert bench.records[-1]["hint"] == "--allow-domain asked.test"
    assert "lookup" not in bench.order


def test_once_is_for_those_who_wait() -> None:
    bench = Asking(POLICY, TABLE)
    bench.admit(b"asked.test")
    bench.admit(b"asked.test")
    bench.box.approve(scope=ONCE)
    bench.box.pass_time()
    assert [outcome.allowed for outcome in bench.outcomes] == [True, True]
    assert bench.admit(b"asked.test") is None


def test_a_yes_through_a_parent_proxy_leaves_the_name_to_it() -> None:
    parent = Parent([(2, "192.0.2.1")], 3128, None)
    bench = Asking(POLICY, TABLE, parent=parent)
    bench.admit(b"asked.test")
    bench.box.approve()
    bench.box.pass_time()
    (grant,) = bench.outcomes
    assert grant.parent is parent
    assert "lookup" not in bench.order


def test_a_log_that_cannot_be_written_refuses() -> None:
    bench = Asking(POLICY, TABLE)
    bench.log.writable = False
    assert bench.admit(b"asked.test").reason == "audit-unwritable"
    bench.log.writable = True
    bench.admit(b"asked.test")
    bench.log.writable = False
    bench.box.approve()
    bench.box.pass_time()
    assert bench.outcomes[-1].reason == "audit-unwritable"
    assert "lookup" not in bench.order


def test_a_fault_on_the_way_is_a_no() -> None:
    """INV-1."""
    bench = Asking(POLICY, TABLE)

    def broken(*words: object) -> str | None:
        raise RuntimeError("broken")

    bench.box.inbox.ask = broken  # type: ignore[method-assign]
    assert bench.admit(b"asked.test").reason == "internal"


def test_beyond_the_bounds_it_is_refused_at_once() -> None:
    bench = Asking()
    for turn in range(inbox.MAX_QUESTIONS):
        bench.admit(b"n%d.test" % turn)
    assert bench.admit(b"more.test").reason == "limit"


class TestNames:
    def test_a_name_that_may_be_asked_about_gets_an_address_and_nobody_is_asked(self) -> None:
        bench = Asking(POLICY, TABLE)
        judged = bench.gate.decide_name(b"www.asked.test")
        assert (judged.allowed, judged.reason, judged.wildcard) == (True, "ask", "asked.test")
        assert bench.order == []
        synthetic = inet_ntoa(bench.pool.address_of("asked.test"))
        assert bench.admit(synthetic.encode(), door="transparent", address=synthetic) is None
        bench.box.approve()
        bench.box.pass_time()
        assert bench.outcomes[0].host == "asked.test"

    @pytest.mark.parametrize("name", [b"bad.test", b"a.worse.test", b"dns.google", b"evil\0.test"])
    def test_a_name_that_is_denied_does_not_exist(self, name: bytes) -> None:
        assert not Asking().gate.decide_name(name).allowed

    def test_without_an_inbox_it_does_not_exist(self) -> None:
        assert not Bench(POLICY).gate.decide_name(b"asked.test").allowed
