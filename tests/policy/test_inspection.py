"""Which connections are inspected, and what is decided on requests."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.errors import UsageError
from netsandbox.policy import reasons
from netsandbox.policy.inspection import HttpRequest, Inspection, inspection, request_flag, request_hint, request_rule
from netsandbox.policy.names import canonical
from netsandbox.policy.policy import FILTERED, OFFLINE, Policy
from netsandbox.policy.verdict import TCP, Request

HOST = "api.example.com"


def made(
    allow: tuple[str, ...] = (), deny: tuple[str, ...] = (), hosts: tuple[str, ...] = (), excepted: tuple[str, ...] = ()
) -> Inspection:
    found = inspection(*([(text, "here") for text in texts] for texts in (allow, deny, hosts, excepted)))
    assert found is not None
    return found


def decided(rules: Inspection, method: str, target: str, scheme: str = "https", **more: bool) -> str:
    answer = rules.decide(HOST, 443, HttpRequest(scheme, method, target, **more))
    assert answer.allowed == (answer.reason in reasons.ALLOWING)
    return answer.reason


def test_without_rules_there_is_no_inspection() -> None:
    assert inspection() is None
    assert inspection(excepted=[("example.com", "here")]) is None


def test_a_host_is_inspected_at_the_port_of_its_rule() -> None:
    rules = made(allow=(f"GET https://{HOST}/v1/**",), hosts=("other.example.com",), excepted=("pinned.example.com",))
    assert rules.covers(HOST, 443)
    assert not rules.covers(HOST, 80)
    assert rules.covers("other.example.com", 80)
    assert not rules.covers("example.com", 443)


def test_an_exception_is_not_inspected_and_needs_its_own_rule() -> None:
    rules = made(allow=("GET https://*.example.com/**",), excepted=("pinned.example.com",))
    policy = Policy(inspection=rules)
    assert not rules.covers("pinned.example.com", 443)
    assert policy.decide(Request(canonical("api.example.com"), 443, TCP)).allowed
    assert not policy.decide(Request(canonical("pinned.example.com"), 443, TCP)).allowed


def test_a_rule_for_an_exception_is_an_error() -> None:
    with pytest.raises(UsageError, match="not inspected"):
        made(deny=(f"POST https://{HOST}/**",), excepted=("*.example.com",))


def test_an_allow_rule_opens_its_host_and_a_deny_rule_does_not() -> None:
    assert Policy(inspection=made(allow=(f"GET https://{HOST}/**",))).mode == FILTERED
    assert Policy(inspection=made(deny=(f"GET https://{HOST}/**",))).mode == OFFLINE


def test_only_allowed_requests_pass() -> None:
    rules = made(allow=(f"GET,HEAD https://{HOST}/v1/**",))
    assert decided(rules, "GET", "/v1/a?x=1") == reasons.RULE
    assert decided(rules, "POST", "/v1/a") == reasons.REQUEST_NOT_ALLOWED
    assert decided(rules, "get", "/v1/a") == reasons.REQUEST_NOT_ALLOWED
    assert decided(rules, "GET", "/v2/a") == reasons.REQUEST_NOT_ALLOWED
    assert decided(rules, "GET", "/v1/a", "http") == reasons.REQUEST_NOT_ALLOWED


def test_deny_wins_and_the_rest_passes_without_an_allow() -> None:
    """INV-6."""
    rules = made(deny=(f"POST https://{HOST}/gists",))
    assert decided(rules, "POST", "/gists") == reasons.REQUEST_DENIED
    assert decided(rules, "POST", "/gists", "http") == reasons.REQUEST_DENIED
    assert decided(rules, "post", "/gists/") == reasons.REQUEST_DENIED
    assert decided(rules, "POST", "/%67ists") == reasons.REQUEST_DENIED
    assert decided(rules, "POST", "/other") == reasons.INSPECTED
    both = made(allow=(f"https://{HOST}/**",), deny=(f"POST https://{HOST}/gists",))
    assert decided(both, "POST", "/gists") == reasons.REQUEST_DENIED


def test_connect_and_trace_never_pass() -> None:
    rules = made(hosts=(HOST,))
    assert {decided(rules, method, "/") for method in ("CONNECT", "TRACE", "trace", "", "G T")} == {
        reasons.REQUEST_METHOD
    }


@pytest.mark.attack(42)
def test_an_ambiguous_path_passes_only_where_no_rule_depends_on_it() -> None:
    scoped = "/@scope%2fname"
    assert decided(made(hosts=(HOST,)), "GET", scoped) == reasons.INSPECTED
    assert decided(made(allow=(f"GET https://{HOST}/**",)), "GET", scoped) == reasons.RULE
    assert decided(made(allow=(f"GET https://{HOST}/v1/**",)), "GET", scoped) == reasons.REQUEST_UNCLEAR
    assert decided(made(allow=(f"GET https://{HOST}/**",)), "GET", scoped, "http") == reasons.REQUEST_UNCLEAR
    denied = made(allow=(f"GET https://{HOST}/**",), deny=(f"GET https://{HOST}/admin/**",))
    assert decided(denied, "GET", "/a/../admin") == reasons.REQUEST_UNCLEAR
    assert decided(made(deny=(f"PUT https://{HOST}/**",)), "GET", scoped) == reasons.INSPECTED


def test_a_header_that_replaces_the_method_is_refused_where_there_are_rules() -> None:
    assert decided(made(deny=(f"DELETE https://{HOST}/**",)), "POST", "/", is_unclear=True) == reasons.REQUEST_UNCLEAR
    assert decided(made(hosts=(HOST,)), "POST", "/", is_unclear=True) == reasons.INSPECTED


PATHS = st.text(st.sampled_from("/ab.%2ef;"), max_size=10).map(lambda text: f"/{text}")
GLOBS = st.sampled_from(["/**", "/a/**", "/a", "/*/b", "/b/**"])
METHODS = st.sampled_from(["GET", "POST", "get", "PUT"])
RULES = st.lists(st.tuples(st.sampled_from(["GET", "POST", "*"]), GLOBS), max_size=3)


@given(RULES, RULES, METHODS, PATHS)
def test_more_denies_and_fewer_allows_never_open_anything(
    allow: list[tuple[str, str]], deny: list[tuple[str, str]], method: str, path: str
) -> None:
    """INV-6: a deny rule more never turns a denial into a pass, in any order."""
    allowing = tuple(f"{methods} https://{HOST}{glob}" for methods, glob in allow)
    denying = tuple(f"{methods} https://{HOST}{glob}" for methods, glob in deny)
    request = HttpRequest("https", method, path)
    without = made(allow=allowing, hosts=(HOST,)).decide(HOST, 443, request)
    with_denies = made(allow=allowing, deny=denying, hosts=(HOST,)).decide(HOST, 443, request)
    reverse = made(allow=allowing[::-1], deny=denying[::-1], hosts=(HOST,)).decide(HOST, 443, request)
    assert not (with_denies.allowed and not without.allowed)
    assert with_denies.allowed == reverse.allowed


@given(st.text(alphabet="/ab'$`&|*%2e", max_size=12), st.sampled_from(["GET", "get", "P OST", "PUT"]))
def test_the_proposed_rule_allows_this_request_and_no_other(path: str, method: str) -> None:
    request = HttpRequest("https", method, f"/{path}?query")
    rule = request_rule(HOST, 443, request)
    if rule is None:
        return
    rules = made(allow=(rule,))
    assert rules.decide(HOST, 443, request).allowed
    assert not rules.decide(HOST, 443, HttpRequest("https", method, f"/{path}x")).allowed
    assert not rules.decide(HOST, 443, HttpRequest("https", "DELETE", f"/{path}")).allowed


def test_a_path_cannot_leave_its_quotes_or_widen_its_rule() -> None:
    """A command chooses the path, and a user may paste the option into a shell."""
    rules = made(allow=(f"GET https://{HOST}/v1/**",))
    quoted = HttpRequest("https", "GET", "/'$(id)'")
    answer = rules.decide(HOST, 443, quoted)
    assert shlex.split(request_flag(answer, quoted) or "") == ["--allow-http", f"GET https://{HOST}/'$(id)'"]
    wide = HttpRequest("https", "GET", "/**")
    assert request_flag(rules.decide(HOST, 443, wide), wide) is None
    assert "an --allow-http rule that covers it" in (request_hint(rules.decide(HOST, 443, wide), wide) or "")


def test_a_request_in_the_clear_is_refused_by_its_scheme() -> None:
    rules = made(allow=(f"GET https://{HOST}:*/v1/**",))
    for scheme, is_named in (("http", True), ("https", False)):
        request = HttpRequest(scheme, "GET", "/v1/a" if is_named else "/v2")
        hint = request_hint(rules.decide(HOST, 8080, request), request) or ""
        assert ("but not GET of this path over http, which no rule for https allows; the user" in hint) == is_named
        assert f"--allow-http 'GET {scheme}://{HOST}:8080/" in hint


def test_every_host_can_be_inspected_but_localhost() -> None:
    rules = made(hosts=("*",), excepted=("pinned.example.com",))
    assert rules.covers(HOST, 443)
    assert not rules.covers(HOST, 8443)
    assert not rules.covers("pinned.example.com", 443)
    assert not rules.covers("localhost", 443)
    assert not rules.covers("shop.localhost", 80)
    assert made(hosts=("*:*",)).covers(HOST, 8443)
    assert made(hosts=("*:8443",)).covers(HOST, 8443)
    assert decided(rules, "POST", "/x") == reasons.INSPECTED
    with pytest.raises(UsageError):
        made(hosts=("*:x",))
    with pytest.raises(UsageError):
        made(hosts=(HOST,), excepted=("*",))
