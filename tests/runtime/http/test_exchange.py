"""One exchange between two sockets: bytes behind a response taint its connection, and a cut response is a fault.

`tests/proxy/test_http_stage_exchange.py` has long and slow responses.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from netsandbox.runtime.http.body import NO_BODY
from netsandbox.runtime.http.exchange import Exchange
from netsandbox.runtime.http.request import ForwardRequest
from netsandbox.runtime.loop import Loop
from netsandbox.runtime.pump import PipePool
from netsandbox.runtime.stream import Stream, ignore_events

REQUEST = ForwardRequest(b"a", 80, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"GET", NO_BODY, False, True)


class Scene:
    def __init__(self) -> None:
        loop = Loop()
        self.loop = loop
        self.pipes = PipePool()
        inner, self.client = socket.socketpair()
        outer, self.server = socket.socketpair()
        for sock in (inner, outer):
            sock.setblocking(False)
        self.streams = [Stream(loop, sock, ignore_events) for sock in (inner, outer)]
        self.exchange = Exchange(*self.streams, REQUEST, self.pipes)

    def close(self) -> None:
        self.exchange.close()
        for end in (*self.streams, self.client, self.server, self.pipes, self.loop):
            end.close()


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


def test_a_response_passes_and_the_connection_can_be_used_again(scene: Scene) -> None:
    assert scene.exchange.start(b"GET /next") == b"GET /next"
    assert scene.server.recv(100) == REQUEST.head_bytes
    scene.server.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
    scene.exchange.read_answer()
    assert scene.client.recv(100).endswith(b"hi")
    assert (scene.exchange.complete, scene.exchange.reusable) == (True, True)


def test_bytes_behind_a_response_are_kept_from_the_client(scene: Scene) -> None:
    scene.exchange.start(b"")
    scene.server.sendall(b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")
    scene.exchange.read_answer()
    assert scene.client.recv(100) == b"HTTP/1.1 204 No Content\r\n\r\n"
    assert not scene.exchange.reusable


def test_a_response_that_is_cut_is_a_fault(scene: Scene) -> None:
    scene.exchange.start(b"")
    scene.server.close()
    scene.exchange.read_answer()
    assert scene.exchange.fault is not None
