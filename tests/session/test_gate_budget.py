"""Budgets at the gate: what they refuse, where, and what the record and the refusal say."""

from __future__ import annotations

from typing import Any

from netsandbox_proxy.contract import Parent

from netsandbox.policy.budgets import parse_budgets
from netsandbox.policy.policy import Policy
from tests.rig.gate_bench import Bench, found
from tests.rig.inbox_bench import InboxBench

TABLE = {
    "a.example.com": found("203.0.113.1"),
    "b.example.com": found("203.0.113.2"),
    "other.test": found("203.0.113.3"),
}


def bench(*texts: str, **changes: Any) -> Bench:
    budgets = parse_budgets((text, "--budget") for text in texts)
    return Bench(Policy(["*.example.com", "other.test"], budgets=budgets), TABLE, **changes)


def test_a_grant_has_a_meter_where_a_budget_covers_it() -> None:
    made = bench("*.example.com=1kB")
    first, second = made.admit(b"a.example.com"), made.admit(b"B.example.com.")
    assert first.meter.accounts == second.meter.accounts
    assert made.admit(b"other.test").meter is None
    assert bench().admit(b"a.example.com").meter is None


def test_a_spent_budget_refuses_before_anything_leaves() -> None:
    made = bench("*.example.com=1kB", parent=None)
    made.admit(b"a.example.com").meter.charge_down(1000)
    del made.story[:]
    refusal = made.admit(b"b.example.com")
    assert (refusal.reason, refusal.host, refusal.port) == ("budget", "b.example.com", 443)
    assert refusal.hint == (
        "--budget *.example.com=1kB is used up (0 B up and 1 kB down);"
        " the user can start the session with a larger one."
    )
    assert made.order == ["egress", "done"]  # no lookup
    (record,) = made.records
    assert (record["verdict"], record["reason"], record["rule"]) == ("deny", "budget", "*.example.com=1kB")
    assert record["detail"] == "0 B up and 1 kB down"
    assert record["hint"] is None
    assert made.admit(b"other.test").allowed
    assert made.admit(b"denied.test").reason == "not-allowed"  # as without a budget


def test_a_budget_holds_behind_a_parent_proxy_too() -> None:
    made = bench("1kB", parent=Parent([(2, "203.0.113.9")], 3128, None))
    made.admit(b"a.example.com").meter.charge_up(1000)
    assert made.admit(b"other.test").reason == "budget"


def test_a_connection_that_is_cut_is_recorded_with_the_budget() -> None:
    made = bench("a.example.com=up=1kB", "5kB")
    grant = made.admit(b"a.example.com")
    grant.meter.charge_up(1000)
    del made.story[:]
    refusal = made.gate.refuse(grant, "budget")
    assert (refusal.reason, made.records[0]["rule"]) == ("budget", "a.example.com=up=1kB")
    assert made.records[0]["detail"] == "1 kB up and 0 B down"


def test_other_refusals_of_a_grant_with_a_budget_are_as_before() -> None:
    made = bench("1kB")
    grant = made.admit(b"a.example.com")
    assert made.gate.refuse(grant, "sni-mismatch").reason == "sni-mismatch"
    assert made.records[-1]["rule"] is None


def test_a_spent_session_does_not_ask_the_user() -> None:
    box = InboxBench()
    policy = Policy(["other.test"], mode="filtered", budgets=parse_budgets([("1kB", "--budget")]))
    made = Bench(policy, {**TABLE, "asked.test": found("203.0.113.4")}, inbox=box.inbox)
    assert made.admit(b"asked.test") is None  # it waits
    box.approve()
    box.pass_time()
    approved = made.story[-1][1]
    assert approved.meter is not None
    approved.meter.charge_up(1000)
    assert made.admit(b"new.test").reason == "budget"
    assert made.admit(b"asked.test").reason == "budget"
    assert box.inbox.status() == []


def test_an_approval_that_comes_after_the_end_of_the_budget_opens_nothing() -> None:
    box = InboxBench()
    policy = Policy(["other.test"], mode="filtered", budgets=parse_budgets([("1kB", "--budget")]))
    made = Bench(policy, {**TABLE, "asked.test": found("203.0.113.4")}, inbox=box.inbox)
    made.admit(b"asked.test")
    made.admit(b"other.test").meter.charge_up(1000)
    box.approve()
    box.pass_time()
    assert made.story[-1][1].reason == "budget"
