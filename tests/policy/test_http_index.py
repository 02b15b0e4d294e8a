"""The index of rules for requests finds what a walk over all of them finds, in the same order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.http_index import HttpRuleIndex
from netsandbox.policy.http_paths import canonical_path
from netsandbox.policy.http_rules import HttpRule, parse_http
from netsandbox.policy.inspection import HttpRequest, Inspection
from netsandbox.policy.policy import DomainRule
from netsandbox.policy.rules import parse_domain

NAMES = st.sampled_from(["example.com", "a.example.com", "b.a.example.com", "xexample.com", "other.org"])
HOSTS = st.builds("{}{}{}".format, st.sampled_from(["", "*.", "**."]), NAMES, st.sampled_from(["", ":8443", ":*"]))
SEGMENTS = st.sampled_from(["", "a", "b", "a*", "*", "**"])
PATTERNS = st.lists(SEGMENTS, max_size=3).map(lambda parts: "".join(f"/{part}" for part in parts))
TEXTS = st.builds(
    "{} {}://{}{}".format,
    st.sampled_from(["GET", "*", "GET,POST"]),
    st.sampled_from(["http", "https"]),
    HOSTS,
    PATTERNS,
).filter(lambda text: "//" not in text.partition("://")[2])
RULES = st.lists(TEXTS, max_size=8).map(lambda texts: tuple(parse_http(text, text, deny=True) for text in texts))
DOMAINS = st.lists(HOSTS, max_size=3).map(lambda texts: tuple(parse_domain(text, text, deny=True) for text in texts))
PORTS = st.sampled_from([80, 443, 8443])
TARGETS = st.sampled_from(["/", "/a", "/A", "/a/", "/ab", "/a/b", "/b/a/", "/c", "/a//b", "/%61"])
REQUESTS = st.builds(HttpRequest, st.sampled_from(["http", "https"]), st.sampled_from(["GET", "POST"]), TARGETS)


@given(RULES, NAMES, PORTS, TARGETS)
def test_the_index_is_a_walk(rules: tuple[HttpRule, ...], host: str, port: int, target: str) -> None:
    index, path = HttpRuleIndex(rules), canonical_path(target)
    covering = [rule for rule in rules if rule.covers(host, port)]
    assert index.rules(host, port) == covering
    assert index.covers(host, port) == bool(covering)
    if path is not None:
        matching = [rule for rule in covering if rule.denies("GET", path) or rule.allows("https", "GET", path)]
        assert [rule for rule in index.rules(host, port, path) if rule in matching] == matching


class Walk(HttpRuleIndex):
    """Looks at every rule."""

    def __init__(self, rules: tuple[HttpRule, ...]) -> None:
        self.listed = rules

    def covers(self, host: str, port: int) -> bool:
        return bool(self.rules(host, port))

    def rules(self, host: str, port: int, path: str | None = None) -> list[HttpRule]:
        return [rule for rule in self.listed if rule.covers(host, port)]


def is_among(rules: tuple[DomainRule, ...], host: str, port: int) -> bool:
    return any(
        rule.covers(host) and port in (rule.ports or ((80, 443) if rule.ports is None else (port,))) for rule in rules
    )


@given(RULES, RULES, DOMAINS, DOMAINS, NAMES, PORTS, REQUESTS)
def test_decisions_are_those_of_a_walk(
    allow: tuple[HttpRule, ...],
    deny: tuple[HttpRule, ...],
    hosts: tuple[DomainRule, ...],
    excepted: tuple[DomainRule, ...],
    host: str,
    port: int,
    request: HttpRequest,
) -> None:
    found, walked = (Inspection(allow, deny, hosts, excepted) for _ in range(2))
    walked._allowing, walked._denying = Walk(allow), Walk(deny)
    assert found.decide(host, port, request) == walked.decide(host, port, request)
    rules = walked._allowing.covers(host, port) or walked._denying.covers(host, port)
    expected = not is_among(excepted, host, port) and (rules or is_among(hosts, host, port))
    assert found.covers(host, port) == expected


def test_an_exception_lifts_its_own_rule() -> None:
    hosts = (parse_domain("**.example.com except a.example.com", "here", deny=True),)
    rules = Inspection(hosts=hosts)
    assert rules.covers("b.example.com", 443)
    assert not rules.covers("a.example.com", 443)
