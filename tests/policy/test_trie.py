"""The closest rule wins, whole labels only, and many rules stay one lookup."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from netsandbox.policy.ip import parse
from netsandbox.policy.rules import parse_address, parse_domain
from netsandbox.policy.trie import EVERY_PORT, SOME_PORT, AddressTable, NameTrie


def trie(*texts: str, bare: tuple[int, ...] = (80, 443)) -> NameTrie:
    return NameTrie([parse_domain(text, f"rules:{line}") for line, text in enumerate(texts, 1)], bare)


def found(rules: NameTrie, name: str, port: int = 443) -> str | None:
    rule = rules.match(name, port)
    return None if rule is None else rule.text


def test_the_name_itself_comes_before_the_nearest_parent():
    rules = trie("**.x.test", "*.a.x.test", "b.a.x.test")
    assert found(rules, "b.a.x.test") == "b.a.x.test"
    assert found(rules, "c.a.x.test") == "*.a.x.test"
    assert found(rules, "a.x.test") == "**.x.test"
    assert found(rules, "x.test") == "**.x.test"
    assert found(rules, "yx.test") is None


def test_a_farther_rule_counts_where_a_nearer_one_lacks_the_port():
    rules = trie("a.x.test:8443", "*.x.test")
    assert found(rules, "a.x.test", 8443) == "a.x.test:8443"
    assert found(rules, "a.x.test", 443) == "*.x.test"
    assert found(rules, "a.x.test", 22) is None


def test_rules_of_one_name_add_their_ports():
    rules = trie("x.test", "x.test:22", "x.test:8443", "x.test:22")
    assert [found(rules, "x.test", port) for port in (80, 443, 22, 8443, 25)] == [
        "x.test",
        "x.test",
        "x.test:22",
        "x.test:8443",
        None,
    ]
    assert found(rules, "x.test", SOME_PORT) is not None


def test_of_equal_rules_the_first_is_named():
    rule = trie("x.test:22", "X.test:22", "x.test:22").match("x.test", 22)
    assert rule is not None
    assert rule.origin == "rules:1"


def test_every_port_is_covered_only_by_a_rule_for_every_port():
    assert found(trie("x.test:*", "x.test:22"), "x.test", EVERY_PORT) == "x.test:*"
    assert found(trie("x.test:22"), "x.test", EVERY_PORT) is None
    assert found(trie("x.test"), "x.test", EVERY_PORT) is None
    assert found(trie("x.test", "x.test:22", bare=()), "x.test", EVERY_PORT) == "x.test"


def test_sixty_thousand_ports_of_one_host_are_one_bucket():
    rules = trie(*(f"x.test:{port}" for port in range(1, 60_000)))
    assert found(rules, "x.test", 59_999) == "x.test:59999"
    assert found(rules, "x.test", 60_000) is None


def test_a_hundred_thousand_rules_load_and_decide():
    rules = trie(
        *(f"host{n}.zone{n % 1000}.test" for n in range(90_000)), *(f"*.w{n}.test:8443" for n in range(10_000))
    )
    assert found(rules, "host777.zone777.test") == "host777.zone777.test"
    assert found(rules, "host777.zone778.test") is None
    assert found(rules, "a.b.w9999.test", 8443) == "*.w9999.test:8443"


def test_the_narrowest_network_with_the_port_is_named():
    table = AddressTable(
        [parse_address(text, "rules") for text in ("10.0.0.0/8:*", "10.0.0.5:5432", "10.0.0.0/24", "2001:db8::/32")],
        (443,),
    )

    def covered(text: str, port: int, *, exact: bool = False) -> str | None:
        address = parse(text)
        assert address is not None
        rule = table.match(address, port, exact=exact)
        return None if rule is None else rule.text

    assert covered("10.0.0.5", 5432) == "10.0.0.5:5432"
    assert covered("10.0.0.5", 443) == "10.0.0.0/24"
    assert covered("10.0.0.5", 22) == "10.0.0.0/8:*"
    assert covered("10.0.0.5", 22, exact=True) is None
    assert covered("10.0.0.5", 5432, exact=True) == "10.0.0.5:5432"
    assert covered("11.0.0.5", 443) is None
    assert covered("2001:db8::7", 443) == "2001:db8::/32"
    assert covered("2001:db8::7", 80) is None


@pytest.mark.attack(198)
def test_a_decision_takes_as_many_steps_among_many_rules_as_among_few() -> None:
    """Counted, not timed: names and rules that would make a search go back and forth."""
    names = ("a." * 100 + "x.test", "aaa" * 20 + ".x.test", "y.test", ("a" * 60 + ".") * 3 + "x.test")
    few = trie("**.x.test", *(f"{'a.' * depth}x.test" for depth in range(1, 9)))
    many = trie(
        "**.x.test", *(f"{'a.' * depth}x.test" for depth in range(1, 9)), *(f"n{n}.x.test" for n in range(5000))
    )
    for name in names:
        assert steps(many, name) <= steps(few, name) <= 40 * (name.count(".") + 2)


def steps(rules: NameTrie, name: str) -> int:
    """How many lines the interpreter runs for one answer."""
    count = 0

    def traced(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        rules.match(name, 443)
    finally:
        sys.settrace(before)
    return count
