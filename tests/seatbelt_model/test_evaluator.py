"""Verdicts, the rules that decide them, and how they change from model to model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.seatbelt_model import models
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all, evaluate, judge, verdicts
from tests.seatbelt_model.filters import End, Filter, Name, Path
from tests.seatbelt_model.models import Matching, Model, all_models
from tests.seatbelt_model.profile import Profile, Rule
from tests.seatbelt_model.request import Request, bind, connect, connect_unix, file, listen, lookup

Closed = Callable[..., Profile]
OUT = connect("203.0.113.7", 443)
DOOR = connect("127.0.0.1", 9000)


def under(profile: Profile, request: Request, **assumed: models.Assumption) -> tuple[bool, int]:
    """The verdict and its line with some questions answered, the others by default."""
    matching = {key: value for key, value in assumed.items() if key in ("localhost", "local", "paths")}
    rest = {key: value for key, value in assumed.items() if key not in matching}
    verdict = evaluate(profile, request, replace(Model(), matching=replace(Matching(), **matching), **rest))
    return verdict.allowed, verdict.line


def table(profile: Profile, request: Request, question: str) -> str:
    """The names of the assumptions under which it is allowed."""
    every = {"precedence": models.PRECEDENCES, "bind": models.BINDS, "paths": models.PATHS, "local": models.LOCALS}
    return " ".join(each.name for each in every[question] if under(profile, request, **{question: each})[0])


def test_an_empty_profile_denies_without_a_rule() -> None:
    verdict = evaluate(Profile(()), OUT)
    assert (verdict.allowed, verdict.rule, verdict.line) == (False, None, 0)


def test_the_deciding_rule_is_named_by_its_line(closed: Closed) -> None:
    profile = closed("(deny network*)", '(allow network-outbound (remote tcp "localhost:9000"))')
    assert under(profile, DOOR) == (True, 3)
    assert under(profile, OUT) == (False, 2)
    assert under(profile, lookup("a")) == (False, 1)


ALL = "last-match filtered-first nearest-operation nearest-filtered"


@pytest.mark.parametrize(
    ("rules", "request_", "allowed"),
    [
        # Two filtered rules on one operation: the order decides, in every model.
        (['(deny file-read* (subpath "/a"))', '(allow file-read* (subpath "/a/b"))'], file("file-read*", "/a/b"), ALL),
        (['(allow file-read* (subpath "/a/b"))', '(deny file-read* (subpath "/a"))'], file("file-read*", "/a/b"), ""),
        # An unfiltered rule after a filtered one.
        (
            ['(allow network-outbound (literal "/a"))', "(deny network-outbound)"],
            connect_unix("/a"),
            "filtered-first nearest-filtered",
        ),
        (
            ['(deny network-outbound (literal "/a"))', "(allow network-outbound)"],
            connect_unix("/a"),
            "last-match nearest-operation",
        ),
        # A rule on the parent after one on the operation itself.
        (
            ['(allow file-read-data (subpath "/"))', '(deny file-read* (literal "/a"))'],
            file("file-read-data", "/a"),
            "nearest-operation nearest-filtered",
        ),
        (
            ["(allow file-read-metadata)", '(deny file-read* (subpath "/a"))'],
            file("file-read-metadata", "/a"),
            "nearest-operation nearest-filtered",
        ),
        # An unfiltered rule on the operation itself before a filtered one on the parent, and turned round.
        (
            ["(deny file-read-data)", '(allow file-read* (subpath "/a"))'],
            file("file-read-data", "/a"),
            "last-match filtered-first",
        ),
        (
            ['(allow file-read* (subpath "/a"))', "(deny file-read-data)"],
            file("file-read-data", "/a"),
            "filtered-first",
        ),
        # The default stands behind everything, unless the last rule, or the last unfiltered one, wins.
        (["(allow signal)", "(deny default)"], Request("signal"), "nearest-operation nearest-filtered"),
        (["(deny signal)", "(allow default)"], Request("signal"), "last-match filtered-first"),
    ],
)
def test_the_rule_that_decides_under_each_model(
    closed: Closed, rules: list[str], request_: Request, allowed: str
) -> None:
    profile = closed(*rules)
    assert table(profile, request_, "precedence") == allowed
    assert allowed_under_all(profile, request_) is (allowed == ALL)
    assert denied_under_all(profile, request_) is (allowed == "")


@pytest.mark.attack(136)
def test_local_on_an_outbound_rule_is_safe_under_no_model_and_useful_under_none(closed: Closed) -> None:
    profile = closed('(allow network-outbound (local ip "localhost:*"))')
    assert table(profile, OUT, "local") == "local-opens-all"
    assert not denied_under_all(profile, OUT)
    assert not allowed_under_all(profile, DOOR)


@pytest.mark.attack(136)
def test_where_bind_hangs(closed: Closed) -> None:
    inbound = closed('(allow network-inbound (local tcp "localhost:*"))')
    assert table(inbound, bind("127.0.0.1", 8000), "bind") == "bind-under-inbound"
    assert allowed_under_all(inbound, listen("127.0.0.1", 8000))
    both = closed('(allow network-bind network-inbound (local tcp "localhost:8000"))')
    assert allowed_under_all(both, bind("127.0.0.1", 8000))
    assert allowed_under_all(both, listen("::1", 8000))
    for request in (
        bind("127.0.0.1", 8001),
        bind("0.0.0.0", 8000),
        bind("::", 8000),
        bind("127.0.0.1", 0),
        listen("192.0.2.1", 8000),
    ):
        assert denied_under_all(both, request)
    denied = closed("(allow network-bind)", "(deny network-inbound)")
    assert under(denied, bind("::1", 1), bind=models.BIND_UNDER_INBOUND) == (False, 3)
    assert under(denied, bind("::1", 1), bind=models.BIND_ALONE) == (True, 2)


@pytest.mark.attack(141)
def test_a_deny_of_an_unresolved_path_cannot_be_relied_on(closed: Closed) -> None:
    rules = '(allow file-read* (subpath "/private/tmp"))', '(deny file-read* (subpath "/tmp/secret"))'
    profile = closed(*rules)
    assert table(profile, file("file-read-data", "/tmp/secret/x"), "paths") == "paths-as-written"
    mended = closed(rules[0], '(deny file-read* (subpath "/private/tmp/secret"))')
    assert denied_under_all(mended, file("file-read-data", "/tmp/secret/x"))
    assert denied_under_all(mended, file("file-read-data", "/private/tmp/other/../secret/x"))
    assert allowed_under_all(mended, file("file-read-data", "/tmp/other"))


@pytest.mark.attack(142)
def test_the_door_is_open_at_both_loopback_addresses_and_elsewhere_nothing_is_certain(closed: Closed) -> None:
    profile = closed('(allow network-outbound (remote tcp "localhost:9000"))')
    for address in ("127.0.0.1", "::1"):
        assert allowed_under_all(profile, connect(address, 9000))
        assert denied_under_all(profile, connect(address, 9001))
        assert denied_under_all(profile, connect(address, 9000, "udp"))
    for address in ("::ffff:127.0.0.1", "127.0.0.2"):
        assert not allowed_under_all(profile, connect(address, 9000))
        assert not denied_under_all(profile, connect(address, 9000))
        assert denied_under_all(profile, connect(address, 22))
    assert denied_under_all(profile, connect("203.0.113.7", 9000))


def test_what_a_request_does_not_say_turns_out_both_ways(closed: Closed) -> None:
    profile = closed('(allow file-read* (require-all (subpath "/a") (require-not (vnode-type SYMLINK))))')
    request = file("file-read-data", "/a/b")
    assert under(profile, request, undecided=models.UNDECIDED_ALLOWS) == (True, 2)
    assert under(profile, request, undecided=models.UNDECIDED_DENIES) == (False, 1)
    said = replace(request, attributes={"vnode-type": "REGULAR-FILE"})
    assert allowed_under_all(profile, said)
    assert denied_under_all(profile, replace(request, attributes={"vnode-type": "SYMLINK"}))
    denying = closed("(allow signal)", "(deny signal (target others))")
    assert not allowed_under_all(denying, Request("signal"))
    assert allowed_under_all(closed("(allow signal (target self))"), Request("signal", attributes={"target": "self"}))


def test_every_model_gives_one_verdict(closed: Closed) -> None:
    profile = closed("(allow network*)")
    given_ = list(verdicts(profile, OUT))
    assert {verdict.model for verdict in given_} == set(all_models())
    assert all(verdict.line == 2 for verdict in given_)


RULES = st.builds(
    lambda action, operation, filter_: Rule(action, (operation,), filter_),
    st.sampled_from(["allow", "deny"]),
    st.sampled_from(["default", "network*", "network-outbound", "network-inbound", "network-bind"]),
    st.sampled_from(
        [
            None,
            End("remote", "tcp", "*", 443),
            End("remote", "ip", "localhost", None),
            End("local", "tcp", "localhost", None),
            Path("subpath", "/tmp"),
            Name("socket-type", "literal", "SOCK_STREAM"),
        ]
    ),
)
REQUESTS = st.sampled_from(
    [
        *(OUT, DOOR, connect("127.0.0.2", 443), connect_unix("/tmp/x"), bind("::1", 80), listen("0.0.0.0", 80)),
        *(file("file-read-data", "/tmp/x"), lookup("a"), Request("network-bind"), Request("network-outbound")),
    ]
)


@given(st.lists(RULES, max_size=5), RULES, REQUESTS)
def test_another_allow_never_closes_and_another_deny_never_opens(
    rules: list[Rule], added: Rule, request: Request
) -> None:
    before = list(judge(rules, request))
    after = list(judge([*rules, added], request))
    for old, new in zip(before, after, strict=True):
        assert old.model == new.model
        assert new.allowed >= old.allowed if added.action == "allow" else new.allowed <= old.allowed


@given(st.lists(RULES, max_size=5), REQUESTS)
def test_one_model_says_the_same_alone_as_among_all(rules: list[Rule], request: Request) -> None:
    profile = Profile(tuple(rules))
    for verdict in list(verdicts(profile, request))[::17]:
        assert evaluate(profile, request, verdict.model) == verdict


@given(st.lists(RULES, max_size=5), REQUESTS)
def test_all_models_are_counted_though_equal_ones_decide_once(rules: list[Rule], request: Request) -> None:
    profile = Profile(tuple(rules))
    outcomes = {verdict.allowed for verdict in verdicts(profile, request)}
    assert allowed_under_all(profile, request) == (outcomes == {True})
    assert denied_under_all(profile, request) == (outcomes == {False})


@given(st.lists(RULES, max_size=5), REQUESTS)
def test_the_deciding_rule_has_the_action_of_the_verdict(rules: list[Rule], request: Request) -> None:
    for verdict in judge(rules, request):
        assert verdict.allowed == (verdict.rule is not None and verdict.rule.action == "allow")


def test_filters_are_values() -> None:
    one: Filter = Path("literal", "/a", 1)
    assert one == Path("literal", "/a", 2)
