"""If one filter is said to cover another, it matches whatever the other does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.seatbelt_model.coverage import covers, disjoint, speaks_for
from tests.seatbelt_model.filters import All, End, Filter, Name, Not, Path, Some
from tests.seatbelt_model.models import all_matchings
from tests.seatbelt_model.profile import Rule
from tests.seatbelt_model.request import Request, connect, connect_unix, file, lookup

A, AB, AC = Path("subpath", "/a"), Path("subpath", "/a/b"), Path("literal", "/a/c")


@pytest.mark.parametrize(
    ("wide", "narrow", "covered"),
    [
        (None, A, True),
        (A, None, False),
        (A, A, True),
        (A, AB, True),
        (A, AC, True),
        (AB, A, False),
        (Path("subpath", "/"), Path("regex", "x"), True),
        (A, Path("subpath", "/ab"), False),
        (A, Path("regex", "^/a/"), False),
        (Path("prefix", "/a"), Path("subpath", "/ab"), True),
        (Some((A, AC)), AB, True),
        (A, Some((AB, AC)), True),
        (A, All((AB, Path("regex", "x"))), True),
        (All((A, AC)), AC, True),
        (All((A, AC)), AB, False),
        (Not((AB,)), Not((A,)), True),
        (Not((A,)), Not((AB,)), False),
        (End("remote", "ip"), End("remote", "tcp", "localhost", 80), True),
        (End("remote", "tcp", "localhost"), End("remote", "tcp4", "localhost", 80), True),
        (End("remote", "tcp", "localhost"), End("remote", "tcp", "*", 80), False),
        (End("remote", "tcp", "*", 80), End("local", "tcp", "*", 80), False),
        (Name("global-name", "literal", None), Name("global-name", "literal", "a"), True),
        (Name("global-name", "prefix", "a."), Name("global-name", "literal", "a.b"), True),
        (Name("global-name", "prefix", "a."), Name("local-name", "literal", "a.b"), False),
        (Name("global-name", "prefix", "a."), Name("global-name", "literal", None), False),
    ],
)
def test_whether_one_filter_covers_another(wide: Filter | None, narrow: Filter | None, covered: bool) -> None:
    assert covers(wide, narrow) is covered


PATHS = st.sampled_from(["/", "/a", "/a/b", "/ab", "/private/tmp", "/a/b/c"])
LEAVES = st.one_of(
    st.builds(Path, st.sampled_from(["literal", "subpath", "prefix", "path-ancestors"]), PATHS),
    st.builds(Path, st.just("regex"), st.sampled_from(["^/a", "b$", "tmp"])),
    st.builds(
        End,
        st.sampled_from(["remote", "local"]),
        st.sampled_from(["ip", "tcp", "tcp4", "udp", "ip6"]),
        st.sampled_from(["*", "localhost"]),
        st.sampled_from([None, 80, 443]),
    ),
    st.builds(
        Name, st.just("global-name"), st.sampled_from(["literal", "prefix"]), st.sampled_from([None, "a", "a.b", "b"])
    ),
)
FILTERS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: All(tuple(parts))),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: Some(tuple(parts))),
        inner.map(lambda part: Not((part,))),
    ),
    max_leaves=4,
)
REQUESTS: list[Request] = [
    *(file("file-read-data", path) for path in ("/", "/a", "/a/b/c", "/ab", "/tmp/x")),
    *(connect(address, port) for address in ("127.0.0.1", "203.0.113.7", "::1") for port in (80, 443)),
    connect("203.0.113.7", 80, "udp"),
    connect_unix("/a/b"),
    *(lookup(name) for name in ("a", "a.b", "b")),
]


@given(FILTERS, FILTERS)
def test_what_covers_matches_wherever_the_other_does(wide: Filter, narrow: Filter) -> None:
    covered, apart = covers(wide, narrow), disjoint(wide, narrow)
    for matching in all_matchings():
        for request in REQUESTS:
            mine, its = wide.matches(request, matching), narrow.matches(request, matching)
            assert not (covered and its is True and mine is False)
            assert not (apart and its is True and mine is True)


@pytest.mark.parametrize(
    ("left", "right", "apart"),
    [
        (AB, AC, True),
        (A, AC, False),
        (AC, Path("literal", "/a/d"), True),
        (AC, Path("regex", "^/b"), False),
        (Name("target", "literal", "self"), Name("target", "literal", "others"), True),
        (Name("target", "literal", "self"), Name("target", "literal", None), False),
        (Name("target", "literal", "self"), Name("vnode-type", "literal", "DIRECTORY"), False),
        (A, End("remote", "tcp"), False),
    ],
)
def test_what_cannot_match_together(left: Filter, right: Filter, apart: bool) -> None:
    assert disjoint(left, right) is disjoint(right, left) is apart


def test_a_rule_speaks_for_all_below_its_operations() -> None:
    rule = Rule("deny", ("file-read*", "network-outbound"), None)
    assert speaks_for(rule, ("file-read-data", "network-outbound"))
    assert not speaks_for(rule, ("file-read-data", "file-write-data"))
    assert not speaks_for(rule, ("network*",))
