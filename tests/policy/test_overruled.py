"""Rules that contradict each other: found wherever a deny closes all that a rule opens, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.names import canonical
from netsandbox.policy.overruled import overruled
from netsandbox.policy.policy import Policy
from netsandbox.policy.verdict import TCP, Request


@pytest.mark.parametrize(
    ("allow", "deny", "contradicts"),
    [
        ("a.test", "a.test", True),
        ("a.test", "b.test", False),
        ("https://a.test/", "a.test", True),
        ("x.a.test", "*.a.test", True),
        ("x.a.test", "**.a.test", True),
        ("x.a.test", "a.test", False),
        ("*.a.test", "*.a.test", True),
        ("*.a.test", "a.test", False),
        ("*.a.test", "ads.a.test", False),
        ("**.a.test", "*.a.test", False),
        ("**.a.test", "**.a.test", True),
        ("x.a.test", "**.a.test except x.a.test", False),
        ("y.a.test", "**.a.test except x.a.test", True),
        ("*.a.test", "*.a.test except x.a.test", False),
        ("x.a.test", "*.a.test except x.a.test:8080", True),
        ("*.x.a.test", "*.a.test", True),
        ("a.test:443", "a.test", True),
        ("a.test", "a.test:443", False),  # port 80 stays open
        ("a.test:443", "a.test:443", True),
        ("a.test:*", "a.test:443", False),
        ("a.test:*", "a.test:*", True),
        ("a.test", "test", False),
    ],
)
def test_a_rule_that_opens_nothing_is_found_with_the_rule_that_closes_it(
    allow: str, deny: str, *, contradicts: bool
) -> None:
    found = [(one.text, other.text) for one, other in overruled(Policy([allow], [deny]))]
    assert found == ([(allow, deny)] if contradicts else [])


def test_several_denies_may_close_a_rule_together() -> None:
    assert overruled(Policy(["**.a.test"], ["*.a.test", "a.test"]))
    assert overruled(Policy(["a.test"], ["a.test:80", "a.test:443"]))


LABELS = st.sampled_from(["a", "b"])
NAMES = st.lists(LABELS, min_size=1, max_size=2).map(lambda labels: ".".join([*labels, "example", "test"]))
RULES = st.builds(
    lambda wild, name, port: f"{wild}{name}{port}",
    st.sampled_from(["", "*.", "**."]),
    NAMES,
    st.sampled_from(["", ":80", ":443", ":*"]),
)


@given(RULES, st.lists(RULES, max_size=4))
def test_what_is_called_a_contradiction_reaches_nothing(allow: str, denies: list[str]) -> None:
    policy = Policy([allow], denies)
    name = allow.lstrip("*.").partition(":")[0]
    reached = [
        policy.decide(Request(canonical(host), port, TCP)).allowed
        for host in (name, f"zzz.{name}", f"yyy.{name}")
        for port in (80, 443, 8443)
    ]
    if overruled(policy):
        assert not any(reached)
