"""Inspected requests in the clear: their records have an end, and the HAR file gets their heads."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

import pytest

from netsandbox.policy.inspection import HttpRequest
from tests.proxy.conftest import answer_http
from tests.rig.scripted_har import ScriptedHar

GET = b"GET http://allowed.test%s HTTP/1.1\r\nHost: allowed.test\r\nX-Mark: seen\r\n\r\n"


@pytest.fixture
def har(rig: Any) -> ScriptedHar:
    rig.gate.inspected.add("allowed.test")
    return ScriptedHar()


def door(rig: Any, har: ScriptedHar | None) -> int:
    port: int = rig.mixed()
    rig.doors[-1].har = har
    return port


def read_answer(client: socket.socket, end: bytes) -> bytes:
    data = b""
    while not data.endswith(end):
        part = client.recv(65536)
        assert part, data
        data += part
    return data


def test_each_request_has_its_heads_and_its_end(rig: Any, har: ScriptedHar) -> None:
    rig.canary(answer_http)
    client = rig.client(door(rig, har))
    for path in (b"/ok/1", b"/ok/2"):
        client.sendall(GET % path)
        read_answer(client, b"GET %s HTTP/1.1" % path)
    client.close()
    rig.settle()
    assert rig.gate.named("answered") == [("answered", 1, "GET", "/ok/1", 200), ("answered", 2, "GET", "/ok/2", 200)]
    assert [call[1:] for call in har.named("ended")] == [(1, 200, (0, 18)), (2, 200, (0, 18))]
    first, second = har.named("head")[:2]
    assert (first[2], first[3]["X-Mark"], first[4]) == ("HTTP/1.1", "seen", "up")  # type: ignore[index]
    assert (second[3], second[4]) == ({"Content-Length": "18"}, "down")


def test_a_refused_request_is_told_with_its_status(rig: Any, har: ScriptedHar) -> None:
    canary = rig.canary(answer_http)
    client = rig.client(door(rig, har))
    client.sendall(GET % b"/no")
    assert client.recv(65536).startswith(b"HTTP/1.1 403 ")
    assert har.named("asked") == [("asked", 1, HttpRequest("http", "GET", "/no"), "request-denied")]
    assert canary.accepts == 0


def test_without_a_response_there_is_no_end(rig: Any, har: ScriptedHar) -> None:
    def interim(canary: Any, peer: socket.socket) -> None:
        canary.hear(peer)
        peer.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    rig.canary(interim)
    client = rig.client(door(rig, har))
    client.sendall(GET % b"/ok")
    with contextlib.suppress(ConnectionResetError):
        while client.recv(65536):
            pass
    rig.settle()
    assert rig.gate.named("answered") == []
    assert har.named("ended") == []
    assert har.named("lost")


def test_a_session_without_such_a_file_records_the_end_too(rig: Any, har: ScriptedHar) -> None:
    rig.canary(answer_http)
    client = rig.client(door(rig, None))
    client.sendall(GET % b"/ok")
    read_answer(client, b"GET /ok HTTP/1.1")
    assert rig.gate.named("answered") == [("answered", 1, "GET", "/ok", 200)]
