"""Rules for requests as people write them."""

from __future__ import annotations

import pytest

from netsandbox.errors import UsageError
from netsandbox.policy.http_rules import parse_http


def test_a_rule_has_methods_host_port_and_path() -> None:
    rule = parse_http("GET,HEAD https://*.example.com/v1/**", "--allow-http")
    assert (rule.methods, rule.scheme, rule.domain.name, rule.domain.ports) == (
        ("GET", "HEAD"),
        "https",
        "example.com",
        (443,),
    )
    assert rule.covers("api.example.com", 443)
    assert not rule.covers("example.com", 443)
    assert not rule.covers("api.example.com", 8443)
    assert rule.allows("https", "GET", "/v1/a")
    assert not rule.allows("https", "POST", "/v1/a")
    assert not rule.allows("http", "GET", "/v1/a")


@pytest.mark.parametrize("text", ["https://example.com", "* https://example.com/**", "https://example.com/**"])
def test_without_methods_or_path_every_one_is_meant(text: str) -> None:
    rule = parse_http(text, "here")
    assert rule.methods == ()
    assert rule.glob.is_every_path


def test_a_port_can_be_named() -> None:
    assert parse_http("http://example.com:8080/x", "here").covers("example.com", 8080)
    assert parse_http("http://example.com:*/x", "here").covers("example.com", 1)


def test_a_deny_rule_is_generous() -> None:
    rule = parse_http("POST https://example.com/upload", "here", deny=True)
    assert all(rule.denies(method, path) for method in ("POST", "post") for path in ("/upload", "/upload/"))
    assert not rule.denies("GET", "/upload")


@pytest.mark.attack(42)
def test_a_deny_rule_is_about_both_schemes_and_their_ports() -> None:
    """The same server often answers at both."""
    for scheme in ("http", "https"):
        denying = parse_http(f"POST {scheme}://a.test/up", "--deny-http", deny=True)
        assert [denying.covers("a.test", port) for port in (80, 443, 8080)] == [True, True, False]
        named = parse_http(f"POST {scheme}://a.test:8080/up", "--deny-http", deny=True)
        assert [named.covers("a.test", port) for port in (80, 443, 8080)] == [False, False, True]
    allowing = parse_http("GET https://a.test/up", "--allow-http")
    assert [allowing.covers("a.test", port) for port in (80, 443)] == [False, True]


@pytest.mark.attack(42)
def test_a_deny_rule_covers_every_case_and_slash_of_a_path() -> None:
    """Some servers ignore them. An allow rule stays exact."""
    for text in ("POST https://a.test/Up/*.txt", "POST https://a.test/up/*.TXT/"):
        rule = parse_http(text, "--deny-http", deny=True)
        assert all(rule.denies("POST", path) for path in ("/up/a.txt", "/UP/A.TXT", "/Up/a.txt/"))
        assert not any(rule.denies("POST", path) for path in ("/up", "/up/a", "/up/a.txt/b", "/"))
    allowing = parse_http("GET https://a.test/Up/", "--allow-http")
    assert allowing.allows("https", "GET", "/Up/")
    assert not any(allowing.allows("https", "GET", path) for path in ("/up/", "/Up"))
    root = parse_http("https://a.test/", "--deny-http", deny=True)
    assert root.denies("GET", "/")
    assert not root.denies("GET", "/a")


def test_letters_outside_ascii_match_their_encoding() -> None:
    assert parse_http("https://example.com/caf\u00e9", "here").allows("https", "GET", "/caf%C3%A9")


@pytest.mark.parametrize(
    "text",
    [
        "", "GET", "GET example.com/x", "GET ftp://example.com/x", "GET https://", "GET https://*/x", "get https://example.com/",
        "GET,  https://example.com/", "GET https://user@example.com/", "GET https://example.com/?q", "GET https://example.com/#f",
        "GET https://example.com/a//b", "GET https://example.com/../b", "GET https://example.com/a%2fb",
        "GET https://example.com/a**", "TRACE https://example.com/", "CONNECT https://example.com/", "GET https://192.0.2.7/",
        "GET https://example.com/ extra", "G*T https://example.com/", "GET https://*.com/",
    ],
)  # fmt: skip
def test_a_text_that_is_no_rule_is_refused_with_advice(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--allow-http: .*; "):
        parse_http(text, "--allow-http")


@pytest.mark.parametrize(("method", "meant"), [("PSOT", "POST"), ("GTE", "GET"), ("DELTE", "DELETE"), ("GETT", "GET")])
def test_a_slip_in_a_method_is_refused_since_a_deny_rule_would_deny_nothing(method: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"has the method '{method}'; did you mean {meant}\\?$"):
        parse_http(f"{method} https://example.com/", "--deny-http", deny=True)


@pytest.mark.parametrize("method", ["PROPFIND", "PROPPATCH", "MKCOL", "REPORT", "LOCK", "PURGE", "QUERY", "COPY"])
def test_unusual_methods_are_methods(method: str) -> None:
    assert parse_http(f"{method} https://example.com/", "here").methods == (method,)
