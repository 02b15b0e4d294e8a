"""The engine's own answers."""

from __future__ import annotations

import pytest

pytest.importorskip("mitmproxy")

from mitmproxy import http
from netsandbox_proxy.inspect.refusals import error_response, refusal


def asked(method: str = "POST", **headers: str) -> http.Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return http.Request.make(method, "https://a.test/", b"", named)


def test_a_refusal_has_status_reason_and_sentence() -> None:
    made = refusal(asked(), 403, "request-denied", "no\r\nset-cookie: a=b")
    assert (made.status_code, made.headers["x-netsandbox-reason"]) == (403, "request-denied")
    assert made.content is not None
    assert made.content.count(b"\n") == 1


def test_the_answer_to_head_has_no_body() -> None:
    assert refusal(asked("HEAD"), 403, "r", "text").content == b""


def test_grpc_gets_its_status_and_message() -> None:
    made = refusal(asked(content_type="application/grpc+proto"), 403, "request-denied", "100% no")
    assert made.status_code == 200
    assert made.headers["grpc-status"] == "7"
    assert made.headers["grpc-message"] == "netsandbox: 100%25 no"
    assert refusal(asked(content_type="application/grpc"), 502, "r", "t").headers["grpc-status"] == "14"


def test_a_fault_of_the_connection_names_no_product() -> None:
    answer = error_response(400, "bad\r\nx: y")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"mitmproxy" not in answer
    assert answer.count(b"\r\n\r\n") == 1
