"""Requests become rules; a glob stands for things of one kind of which many were used, and writes stay narrow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.learn.request_folding import (
    HOST_SIBLINGS,
    SAFE_METHODS,
    SIBLINGS,
    LearntRequest,
    _outermost,
    fold_requests,
)
from netsandbox.policy.http_paths import canonical_path
from netsandbox.policy.http_rules import parse_http
from netsandbox.policy.inspection import HttpRequest, inspection

UUID = "123e4567-e89b-12d3-a456-426614174000"
HASH = "0a1b2c3d4e5f"


def learnt(*requests: str, host: str = "a.test", port: int = 443, scheme: str = "https") -> list[LearntRequest]:
    return [LearntRequest(scheme, host, port, *request.split()) for request in requests]


def rules(*requests: str) -> list[str]:
    return [each.rule.replace("https://a.test", "") for each in fold_requests(learnt(*requests))]


def test_a_path_stays_as_it_is_and_methods_are_joined() -> None:
    assert rules("HEAD /v1/a", "GET /v1/a", "GET /b", "POST /b") == ["GET,POST /b", "GET,HEAD /v1/a"]


def test_head_joins_the_pattern_of_get() -> None:
    pages = [f"GET /simple/{name}/" for name in "abcde"]
    assert rules(*pages, "HEAD /simple/a/", "HEAD /other") == ["HEAD /other", "GET,HEAD /simple/**"]


def test_neighbours_become_a_glob_that_names_them() -> None:
    (folded,) = fold_requests(learnt(*(f"GET /simple/p{n}x/" for n in range(12))))
    assert folded.rule == "GET https://a.test/simple/**"
    assert folded.comment == "12 paths were used: /simple/p0x/, /simple/p10x/, and 10 more"
    assert rules(*(f"GET /files/{name}" for name in "abcd")) == ["GET /files/*"]
    assert len(rules(*(f"GET /files/{name}" for name in "abcd"[: SIBLINGS - 1]))) == SIBLINGS - 1


def test_a_whole_host_takes_more() -> None:
    assert len(rules(*(f"GET /p{n}x" for n in range(HOST_SIBLINGS - 1)))) == HOST_SIBLINGS - 1
    assert rules(*(f"GET /p{n}x" for n in range(HOST_SIBLINGS))) == ["GET /*"]
    assert rules(*(f"GET /p{n}x" for n in range(HOST_SIBLINGS)), "GET /a/b") == ["GET /**"]


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("/users/42/posts", "/users/*/posts"),
        (f"/o/{UUID}", "/o/*"),
        (f"/commits/{HASH}", "/commits/*"),
        ("/dl/tool-1.2.3.tar.gz", "/dl/tool-*.tar.gz"),
        ("/dl/v1.20.0-rc1/x", "/dl/*/x"),
        ("/v1/python3/deadbeef/sha512/cafe", "/v1/python3/deadbeef/sha512/cafe"),
    ],
)
def test_what_names_one_of_many_becomes_a_wildcard(path: str, pattern: str) -> None:
    assert rules(f"GET {path}") == [f"GET {pattern}"]
    assert rules(f"POST {path}") == [f"POST {path}"]


def test_writes_are_folded_only_by_what_names_one_of_many() -> None:
    assert rules("POST /users/1/posts", "POST /users/2/posts") == ["POST /users/*/posts"]
    assert len(rules(*(f"POST /api/{name}" for name in "abcdefghijklmnop"))) == 16
    assert rules("DELETE /x/1", "PUT /x/1") == ["DELETE,PUT /x/1"]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_path_that_a_wildcard_covers_is_not_proposed_again(method: str) -> None:
    used = [f"{method} {path}" for path in ("/v1/123", "/v1/124", "/v1/a", "/v1/a/b")]
    assert rules(*used) == [f"{method} /v1/*", f"{method} /v1/a/b"]


def test_a_wildcard_in_a_segment_does_not_cover_one_over_segments() -> None:
    deep = [f"GET /v1/a/{name}/x" for name in "abcd"]
    assert rules("GET /v1/12", "GET /v1/ab/12", *deep) == ["GET /v1/*", "GET /v1/a/**", "GET /v1/ab/*"]
    assert _outermost({"/a/*", "/a/**"}) == {"/a/**"}
    assert _outermost({"/a/*", "/a/b/**", "/*/**/c"}) == {"/a/*", "/a/b/**", "/*/**/c"}


def test_places_stay_apart() -> None:
    used = [
        *learnt("GET /a"),
        *learnt("GET /a", port=8443),
        *learnt("GET /a", scheme="http", port=80),
        *learnt("GET /a", host="b.test"),
    ]
    assert [each.rule for each in fold_requests(used)] == [
        "GET http://a.test/a",
        "GET https://a.test/a",
        "GET https://a.test:8443/a",
        "GET https://b.test/a",
    ]


SEGMENTS = st.sampled_from(["a", "b", "c", "d", "e", "1", "22", "1.2.3", HASH, UUID, "x-1.0.tgz", "", "%C3%A9"])
PATHS = st.lists(SEGMENTS, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))
METHODS = st.sampled_from([*SAFE_METHODS, "POST", "DELETE", "PATCH"])
USED = st.builds(
    LearntRequest,
    st.sampled_from(["http", "https"]),
    st.sampled_from(["a.test", "b.test"]),
    st.sampled_from([443, 80, 8443]),
    METHODS,
    PATHS.filter(lambda path: canonical_path(path) == path),
)
UNCLEAR = st.builds(
    LearntRequest, st.just("https"), st.just("a.test"), st.just(443), st.sampled_from(SAFE_METHODS), st.just("/x%2fy")
)


@given(st.lists(USED | UNCLEAR, max_size=30))
def test_every_learnt_request_is_allowed_and_no_other_method(used: list[LearntRequest]) -> None:
    made = fold_requests(used)
    found = inspection([(each.rule, "learn") for each in made])
    for each in used:
        assert found is not None
        assert found.decide(each.host, each.port, HttpRequest(each.scheme, each.method, each.path)).allowed
        for method in (*SAFE_METHODS, "POST", "DELETE", "PATCH", "PUT"):
            others = [
                other for other in used if (other.host, other.port, other.method) == (each.host, each.port, method)
            ]
            if not others:
                request = HttpRequest(each.scheme, method, each.path)
                assert not found.decide(each.host, each.port, request).allowed
    for proposal in made:
        rule = parse_http(proposal.rule, "learn")
        for method in rule.methods:  # each was used with this very pattern
            assert any(
                rule.covers(e.host, e.port) and rule.allows(e.scheme, method, e.path)
                for e in used
                if e.method == method
            )


def test_a_path_with_two_readings_needs_a_rule_for_its_host() -> None:
    """npm asks for packages with a scope in this way."""
    assert rules("GET /@scope%2fname", "GET /a", "HEAD /a", "PUT /b") == ["GET,HEAD /**", "PUT /b"]
    assert rules("GET /1", "HEAD /x%2fy") == ["GET /*", "HEAD /**"]


@given(st.lists(USED, max_size=30))
def test_a_write_opens_no_folder(used: list[LearntRequest]) -> None:
    for proposal in fold_requests([each for each in used if each.method not in SAFE_METHODS]):
        rule = parse_http(proposal.rule, "learn")
        assert "**" not in rule.glob.segments
        lengths = {len(each.path.split("/")) - 1 for each in used}
        assert len(rule.glob.segments) in lengths
