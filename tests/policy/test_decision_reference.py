"""An independent second opinion: another matcher, written anew, agrees on thousands of hostile hosts."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.errors import UsageError
from netsandbox.policy.names import BadName, canonical
from netsandbox.policy.policy import Policy
from netsandbox.policy.rules import parse_domain
from netsandbox.policy.verdict import Request

ALLOW = [
    "example.test",
    "*.x.test",
    "**.y.test:8443",
    "api.z.test:*",
    "xn--bcher-kva.example.test",
    "deep.w.test:22",
    "**.w.test",
]
DENY = ["bad.x.test", "*.evil.y.test", "w.test:80", "**.a.w.test"]


def reference_covers(rule: str, labels: list[str], port: int, bare: set[int] | None) -> bool:
    """Written to be read, not to be fast: compare label lists from the right."""
    name, _, port_text = rule.partition(":")
    if port_text == "" and bare is not None and port not in bare:
        return False
    if port_text not in ("", "*") and int(port_text) != port:
        return False
    wanted = name.split(".")
    front = wanted[0] if "*" in wanted[0] else ""
    if front:
        wanted = wanted[1:]
    if labels[-len(wanted) :] != wanted:
        return False
    extra = len(labels) - len(wanted)
    return {"": extra == 0, "*": extra > 0, "**": extra >= 0}[front]


def reference_allows(text: str, port: int) -> bool:
    labels = text.lower().removesuffix(".").split(".")
    if "dns.google" in (".".join(labels[i:]) for i in range(len(labels))):
        return False
    if any(reference_covers(rule, labels, port, None) for rule in DENY):
        return False
    return any(reference_covers(rule, labels, port, {80, 443}) for rule in ALLOW)


def reference_is_name(text: str) -> bool:
    """Labels of 1 to 63 letters, digits, hyphens and underscores; at most 253 in all; no number at the end."""
    bare = text.lower().removesuffix(".")
    labels = bare.split(".")
    if len(bare) > 253 or any(not 1 <= len(label) <= 63 for label in labels):
        return False
    if any(char not in "abcdefghijklmnopqrstuvwxyz0123456789-_" for label in labels for char in label):
        return False
    return not (labels[-1].isdigit() or labels[-1] == "0x7f")


@pytest.mark.attack(4)
@pytest.mark.attack(7)
@pytest.mark.attack(87)
def test_twelve_thousand_hostile_hosts_get_the_verdict_of_a_second_matcher(hostile_hosts):
    policies = [Policy(ALLOW, DENY), Policy(ALLOW[::-1], DENY[::-1])]
    chance = random.Random(7)
    tally = {"error": 0, "allowed": 0, "denied": 0}
    for raw in hostile_hosts:
        port = chance.choice([80, 443, 443, 443, 8443, 22])
        wire = raw.encode("utf-8")
        if not raw.isascii() or not reference_is_name(raw):
            with pytest.raises(BadName):
                canonical(wire)
            tally["error"] += 1
            continue
        try:
            host = canonical(wire)
        except BadName:
            assert "xn--" in raw.lower(), raw  # well-formed but for its punycode
            continue
        assert host == canonical(raw)
        verdicts = [policy.decide(Request(host, port, "tcp")) for policy in policies]
        expected = reference_allows(raw, port)
        assert [verdict.allowed for verdict in verdicts] == [expected, expected], (raw, port, verdicts)
        tally["allowed" if expected else "denied"] += 1
    assert min(tally.values()) > 500, tally


PATTERNS = st.sampled_from(["a.test", "*.a.test", "**.a.test", "b.a.test", "*.b.a.test", "**.b.a.test", "c.b.a.test"])
PORTS = st.sampled_from(["", "", ":443", ":22", ":*"])
HOSTS = ("a.test", "b.a.test", "c.b.a.test", "d.c.b.a.test", "x.a.test", "ba.test")


@st.composite
def deny_rules(draw: st.DrawFn) -> str:
    """With exceptions that the parser takes, or without any."""
    rule = draw(PATTERNS) + draw(PORTS)
    for _ in range(draw(st.integers(0, 3))):
        wider = f"{rule}{', ' if ' except ' in rule else ' except '}{draw(PATTERNS)}{draw(PORTS)}"
        try:
            parse_domain(wider, "x", deny=True)
        except UsageError:
            continue
        rule = wider
    return rule


def reference_denies(rule: str, labels: list[str], port: int) -> bool:
    """INV-6: a rule denies what its pattern covers and no exception of its own does; other rules do not matter."""
    pattern, _, listed = rule.partition(" except ")
    exceptions = [each for each in listed.split(", ") if each]
    covered = reference_covers(pattern, labels, port, None)
    return covered and not any(reference_covers(each, labels, port, None) for each in exceptions)


@given(st.lists(deny_rules(), max_size=4), st.sampled_from(["online", "filtered"]))
def test_an_exception_lifts_its_own_rule_and_no_other(rules: list[str], mode: str) -> None:
    policy = Policy(["a.test:*", "*.a.test:*", "ba.test:*"], rules, mode=mode)
    for name in HOSTS:
        labels = name.split(".")
        for port in (22, 80, 443):
            denied = any(reference_denies(rule, labels, port) for rule in rules)
            assert policy.decide(Request(canonical(name), port, "tcp")).allowed is not denied, (name, port)
        # A lookup needs one port that no single rule closes; three ports and one more stand for all.
        closed = any(all(reference_denies(rule, labels, port) for port in (22, 80, 443, 9)) for rule in rules)
        assert policy.decide(Request(canonical(name), 0, "dns")).allowed is not closed, name


def test_an_exception_allows_nothing_by_itself() -> None:
    rule = "**.a.test except b.a.test"
    for policy in (Policy((), [rule]), Policy((), [rule], mode="filtered"), Policy(["c.test"], [rule])):
        assert not policy.decide(Request(canonical("b.a.test"), 443, "tcp")).allowed
    for policy in (Policy(["b.a.test"], [rule]), Policy((), [rule], mode="online")):
        assert policy.decide(Request(canonical("b.a.test"), 443, "tcp")).allowed
        assert not policy.decide(Request(canonical("x.a.test"), 443, "tcp")).allowed
    both = Policy((), [rule, "b.a.test:443"], mode="online")
    assert both.decide(Request(canonical("b.a.test"), 443, "tcp")).rule == "b.a.test:443"
