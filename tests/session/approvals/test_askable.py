"""The user is asked only if a missing rule is the only reason against a name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.frozen import copy_with
from netsandbox.policy import reasons
from netsandbox.policy.names import canonical
from netsandbox.policy.policy import Policy
from netsandbox.policy.verdict import DNS, TCP, Request
from netsandbox.session.approvals.askable import is_askable, owner_of

NOTHING = Policy(mode="filtered")
SOME = Policy(["example.com"], ["bad.example.org", "**.worse.test"], mode="filtered")


def asked(policy: Policy, name: str, port: int = 443, kind: str = TCP) -> bool:
    host = canonical(name)
    decided = policy.decide(Request(host, port, kind))
    assert not decided.allowed
    return is_askable(host, decided)


@pytest.mark.parametrize("policy", [NOTHING, SOME])
@pytest.mark.parametrize("kind", [TCP, DNS])
def test_a_name_without_a_rule_is_asked(policy: Policy, kind: str) -> None:
    assert asked(policy, "unknown.test", kind=kind)


def test_a_port_without_a_rule_is_asked() -> None:
    assert asked(SOME, "example.com", 8443)


@pytest.mark.parametrize("kind", [TCP, DNS])
@pytest.mark.parametrize("name", ["bad.example.org", "a.worse.test", "dns.google", "cloudflare-dns.com"])
def test_what_is_denied_is_never_asked(name: str, kind: str) -> None:
    assert not asked(SOME, name, kind=kind)


@pytest.mark.parametrize("policy", [NOTHING, SOME])
@pytest.mark.parametrize("name", ["192.0.2.7", "127.0.0.1", "10.0.0.1", "169.254.169.254", "[2001:db8::1]", "8.8.8.8"])
def test_a_bare_address_is_never_asked(policy: Policy, name: str) -> None:
    assert not asked(policy, name)


@pytest.mark.parametrize("name", ["localhost", "app.localhost", "ip6-loopback"])
def test_loopback_is_never_asked(name: str) -> None:
    assert not asked(SOME, name)


@pytest.mark.parametrize("mode", ["offline", "localhost"])
def test_a_closed_mode_asks_nothing(mode: str) -> None:
    assert not asked(Policy(mode=mode), "unknown.test")


def test_a_bad_port_is_never_asked() -> None:
    assert not asked(SOME, "unknown.test", 0)


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("test", None),
        ("example.com", None),
        ("www.example.com", "example.com"),
        ("a.b.example.com", "example.com"),
        ("example.co.uk", None),
        ("www.example.co.uk", "example.co.uk"),
        ("someone.github.io", None),
        ("a.someone.github.io", "someone.github.io"),
    ],
)
def test_the_owner_of_a_name_is_who_registered_it(name: str, owner: str | None) -> None:
    assert owner_of(name) == owner


@given(st.lists(st.sampled_from(["a", "co", "uk", "github", "io", "com"]), min_size=1, max_size=5))
def test_an_owner_is_a_true_end_of_the_name(labels: list[str]) -> None:
    name = ".".join(labels)
    owner = owner_of(name)
    assert owner is None or (name.endswith(f".{owner}") and "." in owner)


def test_the_reasons_are_those_of_a_missing_rule() -> None:
    host = canonical("unknown.test")
    decided = SOME.decide(Request(host, 443, TCP))
    for reason in reasons.ALL - {reasons.NOT_ALLOWED, reasons.PORT_NOT_ALLOWED, reasons.OFFLINE}:
        other = copy_with(decided, reason=reason)
        assert not is_askable(host, other)
