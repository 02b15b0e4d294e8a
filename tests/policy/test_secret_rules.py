"""Rules for secrets as people write them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.errors import UsageError
from netsandbox.policy.secret_rules import SecretRule, parse_secret


def read(text: str) -> SecretRule:
    return parse_secret(text, "here")


@pytest.mark.parametrize(
    ("text", "place", "source"),
    [
        ("TOKEN@api.example.com", ("header", "authorization"), ("env", "TOKEN")),
        ("TOKEN@api.example.com,header=X-Api-Key", ("header", "x-api-key"), ("env", "TOKEN")),
        ("TOKEN@api.example.com,query=key", ("query", "key"), ("env", "TOKEN")),
        ("TOKEN@https://api.example.com/,env=OTHER", ("header", "authorization"), ("env", "OTHER")),
        ("TOKEN@api.example.com,file=/a,b=c", ("header", "authorization"), ("file", "/a,b=c")),
        ("TOKEN@api.example.com,command=gh auth token", ("header", "authorization"), ("command", "gh auth token")),
    ],
)
def test_place_and_source(text: str, place: tuple[str, str], source: tuple[str, str]) -> None:
    rule = read(text)
    assert (rule.name, rule.places, rule.source) == ("TOKEN", (place,), source)
    assert rule.covers("api.example.com", 443)
    assert not rule.is_optional


def test_hosts_and_flags() -> None:
    rule = read("TOKEN@a.example.com:8443,*.b.example.com,registry=npm,optional=yes,body=pass")
    assert rule.covers("a.example.com", 8443)
    assert not rule.covers("a.example.com", 443)
    assert rule.covers("x.b.example.com", 443)
    assert not rule.covers("x.b.example.com", 80)
    assert not rule.covers("b.example.com", 443)
    assert rule.registries == ("npm",)
    assert rule.is_optional
    assert "body" in rule.flags
    more = read("TOKEN@a.example.com,query=key,header=x-api-key,header=x-other,git=user,unless=BASE_URL")
    assert more.places == (("header", "x-api-key"), ("header", "x-other"), ("query", "key"))
    assert (more.git, more.unless) == ("user", ("BASE_URL",))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "TOKEN",
        "TOKEN@",
        "@api.example.com",
        "TO-KEN@api.example.com",
        "TOKEN@http://api.example.com/",
        "TOKEN@*.com",
        "TOKEN@header=x-api-key",
        "TOKEN@api.example.com,header=",
        "TOKEN@api.example.com,header=two words",
        "TOKEN@api.example.com,header=Host",
        "TOKEN@api.example.com,header=content-length",
        "TOKEN@api.example.com,header=proxy-authorization",
        "TOKEN@api.example.com,query=a&b",
        "TOKEN@api.example.com,git=a b",
        "TOKEN@api.example.com,git=$(id)",
        "TOKEN@api.example.com,env=A,command=b",
        "TOKEN@api.example.com,env=A-B",
        "TOKEN@api.example.com,other=1",
        "TOKEN@api.example.com,,b.example.com",
    ],
)
def test_what_is_no_rule_names_what_helps(text: str) -> None:
    with pytest.raises(UsageError, match=r"^here: .*; "):
        read(text)


@given(st.text(st.sampled_from("AB@,=:/.*-_ fileheadrqucommn\n\0é"), max_size=40))
def test_any_text_is_a_rule_or_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert read(text).name.isidentifier()
