"""What a filter says to a request: yes, no, or that the request does not say."""

from __future__ import annotations

import pytest

from tests.seatbelt_model import models
from tests.seatbelt_model.filters import All, End, Filter, Name, Not, Path, Some, UnixEnd, plain
from tests.seatbelt_model.models import Matching, all_matchings
from tests.seatbelt_model.request import Request, bind, connect, connect_unix, file, listen, lookup

PLAIN = Matching()


def answer(filter_: Filter, request: Request, matching: Matching = PLAIN) -> bool | None:
    return filter_.matches(request, matching)


@pytest.mark.parametrize(
    ("how", "value", "path", "matches"),
    [
        ("literal", "/a/b", "/a/b", True),
        ("literal", "/a/b", "/a/b/c", False),
        ("subpath", "/a/b", "/a/b", True),
        ("subpath", "/a/b", "/a/b/c", True),
        ("subpath", "/a/b", "/a/bc", False),
        ("subpath", "/", "/a", True),
        ("prefix", "/a/b", "/a/bc", True),
        ("prefix", "/a/b", "/a", False),
        ("regex", "^/a/[^/]+$", "/a/b", True),
        ("regex", "^/a/[^/]+$", "/a/b/c", False),
        ("regex", "b$", "/a/b", True),
        ("path-ancestors", "/a/b/c", "/a/b", True),
        ("path-ancestors", "/a/b/c", "/", True),
        ("path-ancestors", "/a/b/c", "/a/b/c", False),
        ("path-ancestors", "/a/b/c", "/a/x", False),
    ],
)
def test_path_filters_match_paths(how: str, value: str, path: str, matches: bool) -> None:
    assert answer(Path(how, value), file("file-read-data", path)) is matches


def test_matchers_differ_on_line_ends_so_nothing_is_decided() -> None:
    assert answer(Path("regex", "^/a$"), file("file-read-data", "/a\n")) is None


@pytest.mark.attack(141)
@pytest.mark.parametrize("value", ["/tmp/x", "/var/tmp/../tmp", "/private/tmp/x/"])
def test_an_unresolved_path_in_a_rule_matches_nothing_or_is_resolved(value: str) -> None:
    request = file("file-read-data", "/tmp/x" if "x" in value else "/private/var/tmp")
    assert answer(Path("subpath", value), request, Matching(paths=models.PATHS_AS_WRITTEN)) is False
    assert answer(Path("subpath", value), request, Matching(paths=models.PATHS_RESOLVED)) is True


@pytest.mark.parametrize(
    ("filter_", "request_", "matches"),
    [
        (End("remote", "tcp", "*", 443), connect("203.0.113.7", 443), True),
        (End("remote", "tcp", "*", 443), connect("203.0.113.7", 444), False),
        (End("remote", "tcp", "*", 443), connect("203.0.113.7", 443, "udp"), False),
        (End("remote", "ip", "*", None), connect("203.0.113.7", 443, "udp"), True),
        (End("remote", "tcp4", "*", None), connect("2001:db8::1", 443), False),
        (End("remote", "ip6", "*", None), connect("2001:db8::1", 443), True),
        (End("remote", "tcp", "localhost", 80), connect("203.0.113.7", 80), False),
        (End("local", "tcp", "localhost", 80), bind("127.0.0.1", 80), True),
        (End("local", "tcp", "localhost", 80), bind("0.0.0.0", 80), False),
        (End("local", "tcp", "localhost", None), bind("::1", 0), True),
        (End("local", "tcp", "localhost", 80), bind("::1", 0), False),
        (End("remote", "tcp"), bind("::1", 80), None),
        (End("remote", "tcp"), listen("::1", 80), None),
        (End("remote", "tcp"), connect_unix("/a"), False),
        (End("remote", "tcp"), lookup("a"), False),
        (UnixEnd("remote"), connect_unix("/a"), True),
        (UnixEnd("remote"), connect("::1", 80), False),
        (UnixEnd("remote"), file("file-read-data", "/a"), False),
        (UnixEnd("remote", (Path("literal", "/b"),)), connect_unix("/a"), False),
        (Path("literal", "/a"), connect_unix("/a"), True),
        (Path("literal", "/a"), connect("::1", 80), False),
        (Name("global-name", "literal", "a"), lookup("a"), True),
        (Name("global-name", "prefix", "a."), lookup("a.b"), True),
        (Name("global-name", "regex", "^a[.]"), lookup("b.a"), False),
        (Name("global-name", "literal", None), lookup("b"), True),
        (Name("local-name", "literal", None), lookup("b"), False),
        (Name("target", "literal", "self"), Request("signal"), None),
    ],
)
def test_network_and_name_filters_match_requests(filter_: Filter, request_: Request, matches: bool | None) -> None:
    assert answer(filter_, request_) is matches


LOCALHOST = End("remote", "tcp", "localhost", 80)


@pytest.mark.attack(142)
@pytest.mark.parametrize(
    ("address", "own", "expected"),
    [
        ("127.0.0.1", False, "exact mapped net own"),
        ("::1", False, "exact mapped net own"),
        ("::ffff:127.0.0.1", False, "mapped own"),
        ("127.0.0.2", False, "net own"),
        ("::ffff:127.0.0.2", False, "own"),
        ("0.0.0.0", False, "own"),
        ("192.0.2.5", True, "own"),
        ("192.0.2.5", False, ""),
        ("::2", False, ""),
    ],
)
def test_what_localhost_matches_under_each_model(address: str, own: bool, expected: str) -> None:
    request = connect(address, 80, own=own)
    matched = [
        assumed.name.removeprefix("localhost-")
        for assumed in models.LOCALHOSTS
        if answer(LOCALHOST, request, Matching(localhost=assumed))
    ]
    assert " ".join(matched) == expected


@pytest.mark.attack(136)
def test_local_on_an_outbound_request_matches_all_or_nothing() -> None:
    filter_ = End("local", "ip", "localhost", 7)
    for matching in all_matchings():
        everything = matching.local is models.LOCAL_OPENS_ALL
        assert answer(filter_, connect("203.0.113.7", 443), matching) is everything
    assert answer(filter_, connect_unix("/a")) is False


YES, NO, OPEN = Name("a", "literal", None), Name("b", "literal", None), Name("c", "literal", None)
ASKED = Request("signal", attributes={"a": "x", "b": None})


@pytest.mark.parametrize(
    ("filter_", "matches"),
    [
        (All((YES, YES)), True),
        (All((YES, OPEN)), None),
        (All((NO, OPEN)), False),
        (Some((NO, NO)), False),
        (Some((NO, OPEN)), None),
        (Some((YES, OPEN)), True),
        (Not((YES,)), False),
        (Not((NO,)), True),
        (Not((OPEN,)), None),
    ],
)
def test_what_is_not_said_is_carried_through(filter_: Filter, matches: bool | None) -> None:
    assert answer(filter_, ASKED) is matches


def test_the_plain_filters_of_a_filter() -> None:
    end = UnixEnd("remote", (Path("literal", "/a"),))
    whole = All((YES, Not((NO,)), Some((OPEN, end))))
    assert plain(whole) == [YES, NO, OPEN, end, Path("literal", "/a")]
    assert plain(whole, narrowing=False) == [YES, OPEN, end, Path("literal", "/a")]
