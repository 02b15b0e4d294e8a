"""Filters are written as Seatbelt takes them; anything else is an error, never a filter that matches nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.seatbelt_model import filter_forms
from tests.seatbelt_model.filter_forms import build, is_filter
from tests.seatbelt_model.filters import All, End, Filter, Name, Not, Path, Some, UnixEnd
from tests.seatbelt_model.values import ProfileError, Symbol

TCP = Symbol("tcp")


@pytest.mark.parametrize(
    ("form", "values", "made"),
    [
        ("literal", ["/a"], Path("literal", "/a")),
        ("path", ["/a"], Path("literal", "/a")),
        ("subpath", ["/a", "/b"], Some((Path("subpath", "/a"), Path("subpath", "/b")))),
        ("prefix", ["/a"], Path("prefix", "/a")),
        ("regex", ["^/a"], Path("regex", "^/a")),
        ("path-ancestors", ["/a/b"], Path("path-ancestors", "/a/b")),
        ("remote", [TCP, "localhost:80"], End("remote", "tcp", "localhost", 80)),
        ("remote", [Symbol("ip"), "*:*"], End("remote", "ip", "*", None)),
        ("to", [Symbol("udp"), "*:53"], End("remote", "udp", "*", 53)),
        ("local", [Symbol("tcp4"), "localhost:*"], End("local", "tcp4", "localhost", None)),
        ("local", [Symbol("ip")], End("local", "ip", "*", None)),
        ("remote", [Symbol("unix-socket")], UnixEnd("remote")),
        ("remote", [Symbol("unix"), Path("literal", "/a")], UnixEnd("remote", (Path("literal", "/a"),))),
        ("global-name", ["a.b"], Name("global-name", "literal", "a.b")),
        ("global-name-prefix", ["a."], Name("global-name", "prefix", "a.")),
        ("sysctl-name-regex", ["^hw"], Name("sysctl-name", "regex", "^hw")),
        ("target", [Symbol("self")], Name("target", "literal", "self")),
        ("socket-protocol", [2], Name("socket-protocol", "literal", "2")),
        ("extension", [], Name("extension", "literal", None)),
        ("require-not", [Path("literal", "/a")], Not((Path("literal", "/a"),))),
        ("require-all", [Path("literal", "/a")], All((Path("literal", "/a"),))),
        ("require-any", [Path("literal", "/a")], Some((Path("literal", "/a"),))),
    ],
)
def test_each_form_makes_its_filter(form: str, values: list[object], made: Filter) -> None:
    assert build(form, values, 3) == made
    assert build(form, values, 3).line == 3


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "::1", "[::1]", "example.com", "LOCALHOST", "", "*.example.com", "0.0.0.0"]
)
def test_a_host_other_than_star_and_localhost_voids_the_profile(host: str) -> None:
    with pytest.raises(ProfileError, match="neither \\* nor localhost"):
        build("remote", [TCP, f"{host}:80"], 1)


@pytest.mark.attack(139)
@pytest.mark.parametrize(
    "port", ["0", "00", "65536", "99999", "080", "-1", "1-2", "", "http", " 80", "80 ", "\uff18\uff10"]
)
def test_a_port_other_than_1_to_65535_voids_the_profile(port: str) -> None:
    with pytest.raises(ProfileError, match="the port is not"):
        build("remote", [TCP, f"localhost:{port}"], 1)


@pytest.mark.parametrize(
    ("form", "values", "part"),
    [
        ("remote", [], "needs a protocol"),
        ("remote", [Symbol("icmp"), "*:*"], "needs a protocol"),
        ("remote", ["localhost:80"], "needs a protocol"),
        ("remote", [TCP, "localhost"], "has no port"),
        ("remote", [TCP, 80], "takes strings"),
        ("remote", [Symbol("unix-socket"), "/a"], "takes path filters"),
        ("literal", [], "takes strings, not nothing"),
        ("literal", [False], "takes strings, not #f"),
        ("subpath", [Symbol("a")], "takes strings, not a"),
        ("global-name", [False], "takes strings"),
        ("global-name", [Symbol("a")], "takes strings, not a"),
        ("target", [True], "takes strings"),
        ("require-not", [], "takes filters"),
        ("require-all", ["/a"], "takes filters"),
    ],
)
def test_what_is_wrong_is_said(form: str, values: list[object], part: str) -> None:
    with pytest.raises(ProfileError, match=part):
        build(form, values, 1)


@given(st.text(max_size=20))
def test_any_address_is_read_or_refused(text: str) -> None:
    try:
        made = build("remote", [TCP, text], 1)
    except ProfileError:
        return
    assert isinstance(made, End)
    assert text == f"{made.host}:{'*' if made.port is None else made.port}"


def grow(form: str, copies: int, times: int) -> None:
    filter_: Filter = Path("literal", "/a")
    for _ in range(times):
        filter_ = build(form, [filter_] * copies, 1)


def test_nesting_and_sharing_are_bounded() -> None:
    with pytest.raises(ProfileError, match="too many"):
        grow("require-not", 1, filter_forms.MAX_FILTER_DEPTH)
    with pytest.raises(ProfileError, match="too many"):
        grow("require-any", 2, 30)


def test_an_unknown_word_is_no_filter() -> None:
    assert not is_filter("with-info")
    assert not is_filter("host")
