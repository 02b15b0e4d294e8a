"""Real names under a wildcard pass; data in labels, and too many names a minute, do not."""

from __future__ import annotations

import base64
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_dns.tunnel_guard import TunnelGuard, entropy

from netsandbox.policy.reasons import TUNNEL_LABEL, TUNNEL_RATE

REAL_FORMS = [
    "www",
    "d111111abcdef8",
    "a1b2c3d4e5f6g7.cdn",
    "rr3---sn-4g5ednsz",
    "ec2-203-0-113-25.us-west-2.compute",
    "productionresultssa12.blob.core",
    "prod-us-west-2-starport-layer-bucket",
    "my-company-production-artifacts-eu-central-1",
    "internal-k8s-ingress-prod-1a2b3c4d5e-1234567890.us-east-1.elb",
    "customer-identity-verification-webhooks-staging",
    "images-prod.6aa30f8b08e16409b46e0173d6de2f56.store",
    "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "5d41402abc4b2a76b9719d911017c592",
    "xn--mnchen-staatsbibliothek-q6b",
]


@pytest.mark.parametrize("form", REAL_FORMS)
def test_real_names_pass(form: str) -> None:
    assert TunnelGuard().admit(f"{form}.wild.test", "wild.test", 0.0) is None


@pytest.mark.attack(67)
def test_a_thousand_labels_of_data_never_pass() -> None:
    guard = TunnelGuard()
    for _ in range(1000):
        label = base64.b32encode(os.urandom(40)).decode().lower()[:63]
        assert guard.admit(f"{label}.wild.test", "wild.test", 0.0) == TUNNEL_LABEL


@pytest.mark.attack(67)
def test_data_spread_over_labels_is_too_long() -> None:
    name = ".".join(["0123456789abcdef" * 2] * 3) + ".wild.test"
    assert TunnelGuard().admit(name, "wild.test", 0.0) == TUNNEL_LABEL


@pytest.mark.attack(67)
def test_a_long_word_of_noise_is_caught_by_its_entropy() -> None:
    assert TunnelGuard().admit("abcdefghijklmnopqrstuvwxyz.wild.test", "wild.test", 0.0) == TUNNEL_LABEL


@pytest.mark.attack(85)
def test_ten_thousand_names_a_minute_are_a_hundred() -> None:
    guard = TunnelGuard()
    verdicts = [guard.admit(f"n{i}.wild.test", "wild.test", i * 0.006) for i in range(10_000)]
    assert verdicts.count(None) == 100
    assert set(verdicts) == {None, TUNNEL_RATE}
    assert guard.admit("n5000.wild.test", "wild.test", 130.0) is None
    assert guard.admit("n0.other.test", "other.test", 59.0) is None


def test_a_name_asked_again_costs_nothing() -> None:
    guard = TunnelGuard(names=2)
    for _ in range(10):
        assert guard.admit("a.wild.test", "wild.test", 1.0) is None
    assert guard.admit("b.wild.test", "wild.test", 1.0) is None
    assert guard.admit("c.wild.test", "wild.test", 1.0) == TUNNEL_RATE


@pytest.mark.attack(232)
def test_lookups_of_known_names_that_reach_a_server_are_counted() -> None:
    guard = TunnelGuard(lookups=3, window=60.0)
    assert guard.admit("a.wild.test", "*.wild.test", 0.0) is None
    assert [guard.charge("*.wild.test", float(i)) for i in range(5)] == [None] * 3 + [TUNNEL_RATE] * 2
    assert guard.charge("other.test", 5.0) is None
    assert guard.charge("wild.test", 59.9) == TUNNEL_RATE
    assert [guard.charge("wild.test", 60.0) for _ in range(4)] == [None] * 3 + [TUNNEL_RATE]


@pytest.mark.attack(232)
@given(st.lists(st.floats(0, 5), max_size=200))
def test_two_windows_after_another_hold_at_most_twice_the_lookups(steps: list[float]) -> None:
    guard, now, passed = TunnelGuard(lookups=5, window=10.0), 0.0, []
    for step in steps:
        now += step
        if guard.charge("wild.test", now) is None:
            passed.append(now)
        assert len([t for t in passed if t > now - 10.0]) <= 10


@pytest.mark.attack(197)
def test_counts_of_lookups_are_forgotten_with_their_parents() -> None:
    guard = TunnelGuard(parents=4)
    for i in range(100):
        if guard.admit(f"a.p{i}.test", f"p{i}.test", i * 61.0) is None:
            guard.charge(f"p{i}.test", i * 61.0)
    assert len(guard._charged) <= 4


def test_an_exact_rule_is_not_judged() -> None:
    assert TunnelGuard(names=0).admit("x" * 63 + ".test", None, 0.0) is None
    assert TunnelGuard(lookups=0).charge(None, 0.0) is None


@given(st.lists(st.tuples(st.integers(0, 30), st.floats(0, 20)), max_size=150))
def test_no_window_ever_holds_more_than_its_names(asked: list[tuple[int, float]]) -> None:
    guard = TunnelGuard(names=5, window=10.0)
    now = 0.0
    admitted: list[tuple[float, str]] = []
    for number, step in asked:
        now += step / 4
        name = f"n{number}.wild.test"
        if guard.admit(name, "wild.test", now) is None:
            admitted.append((now, name))
        # Twice, because a name may be asked again at the end of its window and then make room for a new one.
        assert len({n for t, n in admitted if t > now - 10.0}) <= 5 * 2
        assert len(guard._seen["wild.test"]) <= 5


@pytest.mark.attack(197)
def test_parents_are_bounded() -> None:
    guard = TunnelGuard(parents=8)
    for i in range(100):
        guard.admit(f"a.p{i}.test", f"p{i}.test", 0.0)
    assert len(guard._seen) == 8


@pytest.mark.attack(197)
def test_no_parent_is_pushed_out_while_its_names_count() -> None:
    guard = TunnelGuard(names=2, parents=8)
    assert [guard.admit(f"x{i}.wild.test", "wild.test", 0.0) for i in range(3)] == [None, None, TUNNEL_RATE]
    others = [guard.admit(f"a.p{i}.test", f"p{i}.test", 1.0) for i in range(100)]
    assert others == [None] * 7 + [TUNNEL_RATE] * 93
    assert guard.admit("y.wild.test", "wild.test", 59.0) == TUNNEL_RATE
    assert guard.admit("x0.wild.test", "wild.test", 59.0) is None
    assert guard.admit("a.late.test", "late.test", 60.5) is None  # in the room of the one that is over
    assert guard.admit("y.wild.test", "wild.test", 60.5) == TUNNEL_RATE  # now there is none
    assert guard.admit("y.wild.test", "wild.test", 62.0) is None


@given(st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=255))
def test_entropy_is_between_none_and_the_alphabet(text: str) -> None:
    assert -1e-9 <= entropy(text) <= 5.3
