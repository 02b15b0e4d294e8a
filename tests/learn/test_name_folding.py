"""Names become rules; a wildcard stands only over names of one owner of which many were used."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from netsandbox.learn.name_folding import SIBLINGS, Proposal, fold_names, may_stand_over
from netsandbox.policy.name_lists import SHARED_SUFFIXES
from netsandbox.policy.names import canonical
from netsandbox.policy.policy import Policy
from netsandbox.policy.verdict import TCP, Request

PORTS = (80, 443)


def rules(used: list[tuple[str, int]], denied: tuple[str, ...] = ()) -> list[str]:
    return [proposal.rule for proposal in fold_names(used, PORTS, denied)]


def siblings(parent: str, port: int = 443, count: int = SIBLINGS) -> list[tuple[str, int]]:
    return [(f"n{number}.{parent}", port) for number in range(count)]


def test_names_stay_as_they_are_and_ports_are_said_only_where_they_are_not_the_default() -> None:
    used = [("a.example.com", 443), ("a.example.com", 80), ("b.test", 8443), ("b.test", 443)]
    assert rules(used) == ["a.example.com", "b.test", "b.test:8443"]


def test_many_siblings_become_a_wildcard_that_says_so() -> None:
    (folded,) = fold_names(siblings("cdn.example.com", count=6), PORTS)
    assert folded.rule == "*.cdn.example.com"
    assert folded.comment == (
        "6 names were used: n0.cdn.example.com, n1.cdn.example.com, n2.cdn.example.com, n3.cdn.example.com, and 2 more"
    )
    assert Proposal("a.test").comment == ""


def test_few_siblings_do_not() -> None:
    assert len(rules(siblings("cdn.example.com", count=SIBLINGS - 1))) == SIBLINGS - 1


def test_siblings_on_another_port_are_folded_for_that_port_alone() -> None:
    assert rules([*siblings("example.com", 8443), ("n0.example.com", 443)]) == ["n0.example.com", "*.example.com:8443"]


def test_a_name_deeper_below_a_wildcard_needs_no_rule_of_its_own() -> None:
    assert rules([*siblings("example.com"), ("x.y.example.com", 443)]) == ["*.example.com"]
    beside = {"badexample.com", "example.com"}
    assert set(rules([*siblings("example.com"), *((name, 443) for name in beside)])) == {"*.example.com", *beside}


@pytest.mark.parametrize("parent", ["com", "co.uk", "github.io", "s3.amazonaws.com", "amazonaws.com", "windows.net"])
def test_no_wildcard_covers_names_of_strangers(parent: str) -> None:
    assert rules(siblings(parent)) == sorted(name for name, _ in siblings(parent))


def test_no_wildcard_covers_a_denied_name() -> None:
    assert len(rules(siblings("example.com"), ("bad.example.com",))) == SIBLINGS
    assert rules(siblings("example.com"), ("bad.example.org",)) == ["*.example.com"]


LABEL = st.sampled_from(["a", "b", "c", "d", "e", "f", "co", "uk", "com", "example", "github", "io", "amazonaws", "s3"])
NAME = st.lists(LABEL, min_size=2, max_size=4).map(".".join)


@given(st.lists(st.tuples(NAME, st.sampled_from([80, 443, 8443])), max_size=40), st.lists(NAME, max_size=3))
def test_whatever_was_used_is_allowed_and_neither_strangers_nor_denied_names_are(
    used: list[tuple[str, int]], denied: list[str]
) -> None:
    assume(not {name for name, _ in used} & set(denied))
    found = fold_names(used, PORTS, denied)
    policy = Policy([proposal.rule for proposal in found], mode="filtered")  # each is a rule, or this raises
    for name, port in used:
        assert policy.decide(Request(canonical(name), port, TCP)).allowed
    for name in denied:
        for port in (80, 443, 8443):
            assert not policy.decide(Request(canonical(name), port, TCP)).allowed
    for proposal in found:
        if proposal.folded:
            parent = proposal.rule.removeprefix("*.").partition(":")[0]
            assert not any(suffix == parent or suffix.endswith(f".{parent}") for suffix in SHARED_SUFFIXES)
            assert may_stand_over(parent, denied)
        else:
            assert proposal.rule.partition(":")[0] in {name for name, _ in used}
