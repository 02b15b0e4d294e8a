"""Heads of requests and responses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("mitmproxy")

from mitmproxy import http
from netsandbox_proxy.inspect.heads import check_request, check_response, counting, plain
from netsandbox_proxy.inspect.request_check import Refused


def asked(**headers: str) -> http.Request:
    named = {"Host": "a.test", **{name.replace("_", "-"): value for name, value in headers.items()}}
    made = http.Request.make("GET", "https://a.test/x", b"", named)
    made.authority = "a.test"
    return made


def test_what_is_meant_for_us_and_other_upgrades_do_not_go_on() -> None:
    request = asked(Upgrade="h2c", Proxy_Authorization="x", X_Netsandbox_Reason="y", Accept="z")
    check_request(request, "a.test", 443)
    assert request.authority == ""
    assert {name.lower() for name in request.headers} == {"host", "accept", "content-length"}


def test_a_websocket_goes_on() -> None:
    request = asked(Upgrade="websocket", Connection="Upgrade")
    check_request(request, "a.test", 443)
    assert request.headers["upgrade"] == "websocket"


@pytest.mark.parametrize("hosts", [["a.test", "a.test"], []])
def test_a_request_has_one_host(hosts: list[str]) -> None:
    request = asked()
    request.headers.set_all("Host", hosts)
    with pytest.raises(Refused):
        check_request(request, "a.test", 443)


def test_a_body_of_two_sizes_is_refused() -> None:
    request = asked()
    request.headers.set_all("Content-Length", ["5", "6"])
    with pytest.raises(Refused):
        check_request(request, "a.test", 443)


def test_versions_and_encodings_that_servers_read_differently_are_refused() -> None:
    for version in ("HTTP/0.9", "HTTP/1.2", "HTTP/3.0"):
        request = asked()
        request.http_version = version
        with pytest.raises(Refused):
            check_request(request, "a.test", 443)
    for encoding in ("gzip, chunked", "identity", "chunked, chunked"):
        with pytest.raises(Refused):
            check_request(asked(Transfer_Encoding=encoding), "a.test", 443)
    check_request(asked(Transfer_Encoding="Chunked"), "a.test", 443)


@pytest.mark.parametrize("status", [101, 199, 200])
def test_a_response_that_would_be_two_is_refused(status: int) -> None:
    response = http.Response.make(status, b"", {"a": "b" if status == 101 else "b\r\nc: d"})
    with pytest.raises(Refused):
        check_response(SimpleNamespace(request=asked(), response=response))


def test_bytes_are_counted_and_passed_on() -> None:
    flow = SimpleNamespace(metadata={})
    count = counting(flow, "up")
    assert count(b"abc") + count(b"de") + count(b"") == b"abcde"
    assert flow.metadata == {"up": 5}


def test_a_text_becomes_one_line() -> None:
    assert plain("a\r\n\u00e9\x1b[1m") == "a  \\xe9 [1m"
