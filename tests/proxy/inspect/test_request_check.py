"""Checks of a request's head."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_proxy.inspect.request_check import Refused, check_authority, check_head, is_unclear


@pytest.mark.parametrize(
    "authority", [b"api.example.com", b"API.example.com", b"api.example.com:443", b"api.example.com."]
)
def test_the_decided_host_may_be_repeated(authority: bytes) -> None:
    check_authority("api.example.com", 443, [authority, authority])


@pytest.mark.parametrize(
    "authorities",
    [[], [b""], [b"example.com"], [b"api.example.com:80"], [b"api.example.com:0443"],
     [b"api.example.com", b"other.test"], [b"api.example.com:"], [b"user@api.example.com"], [b"api.example.com.."]],
)  # fmt: skip
def test_no_other_host_may_be_named(authorities: list[bytes]) -> None:
    with pytest.raises(Refused):
        check_authority("api.example.com", 443, authorities)


def test_another_port_must_be_named() -> None:
    check_authority("api.example.com", 8443, [b"api.example.com:8443"])
    with pytest.raises(Refused):
        check_authority("api.example.com", 8443, [b"api.example.com"])


@given(st.binary(), st.binary(), st.lists(st.tuples(st.binary(), st.binary())))
def test_what_passes_is_one_head_of_http1(method: bytes, target: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    try:
        check_head(method, target, headers)
    except Refused:
        return
    head = b"%s %s HTTP/1.1\r\n" % (method, target) + b"".join(b"%s: %s\r\n" % header for header in headers)
    assert head.count(b"\r") == head.count(b"\n") == 1 + len(headers)
    assert len(head.split(b"\r\n")[0].split(b" ")) == 3
    assert b"\0" not in head


@pytest.mark.parametrize("target", [b"ok", b"https://other.test/", b"other.test:443", b"?x", b"**"])
def test_a_target_is_a_path(target: bytes) -> None:
    check_head(b"OPTIONS", b"*", [])
    with pytest.raises(Refused):
        check_head(b"GET", target, [])


def test_a_head_and_a_target_have_bounds() -> None:
    check_head(b"G" * 64, b"/" * 16384, [(b"x", b"y" * 200000)])
    with pytest.raises(Refused):
        check_head(b"G" * 65, b"/", [])
    for target, value, status in ((b"/" * 16385, b"", 414), (b"/", b"y" * 262144, 431)):
        with pytest.raises(Refused) as refused:
            check_head(b"GET", target, [(b"x", value)])
        assert refused.value.status == status


def test_headers_that_replace_the_method_are_known() -> None:
    for name in (b"X-HTTP-Method-Override", b"X_Http_Method", b"X-Original-URL", b"x_rewrite_url", b"X-Forwarded-Uri",
                 b"X-Forwarded-Path", b"x_forwarded_prefix", b"X-Original-Method"):  # fmt: skip
        assert is_unclear(b"POST", [(b"a", b"b"), (name, b"x")])
    assert not is_unclear(b"POST", [(b"a", b"X-HTTP-Method-Override")])


@pytest.mark.attack(302)
@pytest.mark.parametrize("method", [b"GET", b"HEAD", b"get", b"POST", b"DELETE"])
def test_a_body_is_unclear_where_a_server_may_ignore_it(method: bytes) -> None:
    wanted = method.upper() in (b"GET", b"HEAD")
    for header in ((b"Content-Length", b"5"), (b"Content-Length", b"010"), (b"transfer-encoding", b"chunked")):
        assert is_unclear(method, [(b"host", b"x"), header]) is wanted
    for header in ((b"Content-Length", b"0"), (b"content-length", b"00"), (b"x", b"transfer-encoding")):
        assert not is_unclear(method, [header])
