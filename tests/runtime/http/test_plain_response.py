"""Our own responses are whole, read as any client reads them, and have one line of text."""

from __future__ import annotations

import http.client
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.runtime.http.plain_response import PHRASES, plain_response


class _Socket:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)


def read(data: bytes, method: str = "GET") -> http.client.HTTPResponse:
    response = http.client.HTTPResponse(_Socket(data), method=method)  # type: ignore[arg-type]
    response.begin()
    return response


@given(st.sampled_from(sorted(PHRASES)), st.text())
def test_a_client_reads_status_and_text(status: int, text: str) -> None:
    found = read(plain_response(status, text, "x-more: 1"))
    assert (found.status, found.reason, found.headers["x-more"]) == (status, PHRASES[status], "1")
    assert found.read() == f"netsandbox: {text}\n".encode("ascii", "backslashreplace")
    assert found.will_close


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_head_request_gets_the_length_alone(method: str) -> None:
    data = plain_response(404, "nothing", bodiless=method == "HEAD")
    assert data.endswith(b"\r\n\r\n") == (method == "HEAD")
    assert read(data, method).headers["content-length"] == "20"


def test_an_unknown_status_has_a_phrase() -> None:
    assert read(plain_response(599, "x")).reason == "Refused"
