"""Heads and bodies for a HAR file: what the worker tells, and what the supervisor takes of it."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_proxy.inspect import channel
from netsandbox_proxy.inspect.captured import (
    MAX_HEAD,
    MAX_HEADERS,
    MAX_PART,
    Copying,
    read_body,
    read_head,
    read_side,
    shown_headers,
)
from netsandbox_proxy.inspect.channel import ChannelError

from tests.rig.certificates import CertificateAuthority
from tests.rig.https_canary import HttpsCanary
from tests.rig.inspecting import HOST, EngineBench, wait_for

FIELDS = st.lists(st.tuples(st.binary(max_size=300), st.binary(max_size=9000)), max_size=20)


@given(FIELDS)
def test_the_supervisor_takes_every_head_that_the_worker_tells(fields: list[tuple[bytes, bytes]]) -> None:
    message = {"kind": "head", "version": "HTTP/1.1", "headers": shown_headers(fields)}
    data = channel.encode(message)
    version, headers = read_head(json.loads(data))
    assert version == "HTTP/1.1"
    assert headers == shown_headers(fields)


def test_a_head_is_bounded() -> None:
    assert len(shown_headers([(b"a", b"b")] * 1000)) == MAX_HEADERS
    assert len(shown_headers([(b"a", b"\\" * 8000)] * 100)) < 7
    assert shown_headers([(b"a", "é\x00".encode())]) == [("a", "\\xe9\\x00")]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"version": 1, "headers": []},
        {"version": "x" * 999, "headers": []},
        {"version": "HTTP/1.1", "headers": {}},
        {"version": "HTTP/1.1", "headers": [["a"]]},
        {"version": "HTTP/1.1", "headers": [["a", 1]]},
        {"version": "HTTP/1.1", "headers": [["a", "\x1b[2J"]]},
        {"version": "HTTP/1.1", "headers": [["a", "x" * (MAX_HEAD + 1)]]},
        {"version": "HTTP/1.1", "headers": [["a", "b"]] * (MAX_HEADERS + 1)},
    ],
)
def test_a_wrong_head_is_an_error(fields: dict[str, Any]) -> None:
    with pytest.raises(ChannelError):
        read_head(fields)


@pytest.mark.parametrize("data", [1, "no base64!", "A", "A" * 4 * MAX_PART])
def test_a_wrong_body_is_an_error(data: object) -> None:
    with pytest.raises(ChannelError):
        read_body({"data": data})
    with pytest.raises(ChannelError):
        read_side({"side": "left"})


@given(st.lists(st.binary(max_size=10), max_size=10), st.integers(0, 50))
def test_the_first_bytes_are_told_and_all_pass(parts: list[bytes], room: int) -> None:
    told: list[bytes] = []
    passed: list[bytes] = []

    def passing(data: bytes) -> bytes:
        passed.append(data)
        return data

    copying = Copying(passing, "up", room, lambda message: told.append(read_body(message)))
    for part in parts:
        assert copying(part) == part
    assert b"".join(told) == b"".join(parts)[:room]
    assert passed == parts


def test_a_secret_that_is_put_in_or_taken_out_is_not_told() -> None:
    for side, wanted in (("up", b"placeholder"), ("down", b"masked")):
        told: list[bytes] = []
        change = {b"placeholder": b"secret", b"secret": b"masked"}.__getitem__
        copying = Copying(change, side, 100, lambda message, told=told: told.append(read_body(message)))  # type: ignore[misc]
        copying(b"placeholder" if side == "up" else b"secret")
        assert told == [wanted]


@pytest.mark.parametrize("captured", [None, 0, 100_000])
def test_the_worker_tells_only_what_is_wanted(
    ca: CertificateAuthority, server: HttpsCanary, captured: int | None
) -> None:
    pytest.importorskip("mitmproxy")
    if not sys.platform.startswith("linux"):
        pytest.skip("the engine needs seccomp")
    bench = EngineBench(ca.cert, server.port, captured)
    try:
        client, flow = bench.secured()
        body = b"x" * 200_000
        more = f"Content-Length: {len(body)}\r\nX-Mark: seen\r\nConnection: close\r\n"
        client.sendall(f"POST /ok HTTP/1.1\r\nHost: {HOST}:{server.port}\r\n{more}\r\n".encode() + body)
        while client.recv(65536):
            pass
        assert wait_for(lambda: flow.end)
    finally:
        bench.close()
    assert server.bodies == [body]
    if captured is None:
        assert flow.heads == []
    else:
        (sent, got) = flow.heads
        assert (sent[0], sent[1], sent[2]["x-mark"], sent[3]) == (1, "HTTP/1.1", "seen", "up")
        assert (got[2]["content-length"], got[3]) == ("11", "down")
    assert flow.copied["up"] == body[: captured or 0]
    assert flow.copied["down"] == b"answer /ok\n"[: captured or 0]
