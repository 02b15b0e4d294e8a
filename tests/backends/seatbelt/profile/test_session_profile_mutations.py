"""Each rule of a session's profile is needed and exactly as wide as it is: dropped, turned or widened, a probe notices.

Probes are the promises of the threat model (tests/rig/seatbelt_promises.py) and what programs need of a Mac
(seatbelt_needs.py). A deny that only repeats what is closed anyway is a backstop: it is shown to hold against an
allowance that somebody puts above it one day. What no probe can notice stands here with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from netsandbox.backends.seatbelt.profile.operations import DEFAULT, PARENTS, lineage
from tests.rig.seatbelt_needs import NEEDS
from tests.rig.seatbelt_promises import PROMISES, STATE, TEXT, named
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.models import all_matchings
from tests.seatbelt_model.profile import ALLOW, DENY, Profile, Rule, load
from tests.seatbelt_model.request import Request, connect, connect_unix, lookup

WHOLE = load(TEXT)
# The same names again, in any case. Either rule holds without the other, so each is tried without it.
AGAIN = next(rule for rule in WHOLE.rules if "in other cases" in TEXT.splitlines()[rule.line - 2])
PROFILE = Profile(tuple(rule for rule in WHOLE.rules if rule is not AGAIN))
IN_OTHER_CASES = [
    request
    for promise in PROMISES
    for request in promise.denied
    if any(name in str(request) for name in ("/.GIT", "/.VSC", "/HOOKS"))
]
PROBES = [
    *(
        (request, False)
        for promise in (*PROMISES, *NEEDS)
        for request in promise.denied
        if request not in IN_OTHER_CASES
    ),
    *((request, True) for promise in (*PROMISES, *NEEDS) for request in promise.allowed),
]
MATCHINGS = tuple(all_matchings())
# How a backstop begins; an allowance above it that it must hold against; what must stay closed.
BACKSTOPS: dict[str, tuple[str, Request]] = {
    "(deny default)": ("(allow default)", Request("nvram-set")),
    "(deny sysctl-read\n": ("(allow sysctl-read)", named("sysctl-read", "sysctl-name", "kern.procargs2")),
    "(deny mach-lookup\n": (
        '(allow mach-lookup (global-name-prefix "com.apple."))',
        lookup("com.apple.dnssd.service"),
    ),
    "(deny appleevent-send)": ("(allow appleevent-send)", Request("appleevent-send")),
    "(deny job-creation)": ("(allow job-creation)", Request("job-creation")),
    "(deny lsopen)": ("(allow lsopen)", Request("lsopen")),
    "(deny network*)": ("(allow network*)", connect("203.0.113.7", 443)),
    "(deny system-socket)": ("(allow system-socket)", named("system-socket", "socket-domain", "AF_SYSTEM")),
    '(deny network-outbound\n  (literal "/private/var/run/mDNSResponder")': (
        '(allow network-outbound (subpath "/private/var/run"))',
        connect_unix("/private/var/run/mDNSResponder"),
    ),
    f'(deny network-outbound\n  (subpath "{STATE}")': (
        f'(allow network-outbound (subpath "{STATE}"))',
        connect_unix(f"{STATE}/sessions/1/control"),
    ),
}
# Widened, these open nothing: what else is below the wider operation does not go by path.
NOTHING_MORE = ("process-exec*",)


def needs() -> Iterator[tuple[Request, bool]]:
    for promise in NEEDS:
        yield from ((request, True) for request in promise.allowed)
        yield from ((request, False) for request in promise.denied)


def test_what_programs_need_is_open_under_every_model_and_nothing_beside_it() -> None:
    assert [request for request, open_ in needs() if open_ and not allowed_under_all(WHOLE, request)] == []
    assert [request for request, open_ in needs() if not open_ and not denied_under_all(WHOLE, request)] == []


def test_names_in_other_cases_are_closed_by_a_rule_of_their_own() -> None:
    assert len(IN_OTHER_CASES) > 2
    for request in IN_OTHER_CASES:
        assert denied_under_all(WHOLE, request)
        assert not denied_under_all(PROFILE, request)


@cache
def _concerns(rule: Rule, at: int) -> bool:
    """Whether the rule may have a say in probe *at*, under any model."""
    request, _ = PROBES[at]
    if set(lineage(request.operation)).isdisjoint(rule.operations):
        return False
    return rule.filter is None or any(rule.filter.matches(request, each) is not False for each in MATCHINGS)


def noticed(at: int, changed: Rule | None) -> bool:
    """Whether a probe tells the profile from the one with rule *at* changed, or without it."""
    rules = PROFILE.rules
    mutant = Profile((*rules[:at], *filter(None, (changed,)), *rules[at + 1 :]))
    for number, (request, open_) in enumerate(PROBES):
        if _concerns(rules[at], number) or (changed is not None and _concerns(changed, number)):
            kept = allowed_under_all(mutant, request) if open_ else denied_under_all(mutant, request)
            if not kept:
                return True
    return False


def wider(rule: Rule) -> Iterator[Rule]:
    """An allowance without its filter, and on the operation above each of its own."""
    if rule.filter is not None:
        yield replace(rule, filter=None)
    for name in rule.operations:
        above = PARENTS.get(name, DEFAULT)
        if above not in (DEFAULT, *rule.operations) and name not in NOTHING_MORE:
            yield replace(rule, operations=tuple(above if each == name else each for each in rule.operations))


def source(rule: Rule) -> str:
    return "\n".join(TEXT.splitlines()[rule.line - 1 :])


def backstop(rule: Rule) -> str:
    text = source(rule)
    return next((head for head in BACKSTOPS if rule.action == DENY and text.startswith(head)), "")


@pytest.mark.parametrize(
    "at", range(len(PROFILE.rules)), ids=[f"{rule.action} {rule.operations[0]}" for rule in PROFILE.rules]
)
def test_a_rule_that_is_missing_turned_or_wider_is_noticed(at: int) -> None:
    rule = PROFILE.rules[at]
    if not backstop(rule):
        assert noticed(at, None), "missing"
    assert noticed(at, replace(rule, action=DENY if rule.action == ALLOW else ALLOW)), "turned"
    for changed in wider(rule) if rule.action == ALLOW else ():
        assert noticed(at, changed), changed.operations


@pytest.mark.parametrize("head", BACKSTOPS, ids=[head.partition("\n")[0] for head in BACKSTOPS])
def test_a_backstop_holds_against_an_allowance_above_it_under_every_model(head: str) -> None:
    allowance, request = BACKSTOPS[head]
    assert TEXT.count(head) == 1
    above = TEXT.replace(head, f"{allowance}\n{head}")
    assert denied_under_all(load(above), request)
    without = TEXT.replace(head, f"{allowance}\n{head.replace('(deny', '(allow', 1)}")
    assert not denied_under_all(load(without), request)


def test_every_backstop_is_a_rule_and_every_other_deny_is_none() -> None:
    assert {backstop(rule) for rule in PROFILE.rules} - {""} == set(BACKSTOPS)
