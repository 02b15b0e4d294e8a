"""One socket of an inspected connection."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from netsandbox.runtime.loop import Loop
from netsandbox.runtime.stream import Stream, ignore_events

pytest.importorskip("mitmproxy")

from netsandbox_proxy.inspect.allowance import Allowance
from netsandbox_proxy.inspect.side import Side

NOBODY: Any = None


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, Stream]]:
    near, far = socket.socketpair()
    far.setblocking(False)
    loop = Loop()
    stream = Stream(loop, far, ignore_events)
    yield near, stream
    stream.close()
    loop.close()
    near.close()


def test_closing_ends_the_connection_although_a_copy_is_open(ends: tuple[socket.socket, Stream]) -> None:
    near, stream = ends
    copy = stream.sock.dup()
    side = Side(stream, NOBODY)
    side.close()
    side.close()
    assert near.recv(1) == b""
    copy.close()


def test_no_byte_passes_that_the_budget_did_not_grant(ends: tuple[socket.socket, Stream]) -> None:
    near, stream = ends
    asked: list[tuple[int, int]] = []
    limit = Allowance(lambda up, down: asked.append((up, down)))
    side = Side(stream, NOBODY, limit)
    near.sendall(b"12345")
    side.waiting += b"abc"
    assert (side.read(), side.send()) == (None, 0)
    assert asked == [(0, 5), (3, 0)]
    limit.down.add(2)
    limit.up.add(1)
    assert (side.read(), side.send(), near.recv(9)) == (b"12", 1, b"a")
    assert (bytes(side.waiting), stream.sock.recv(9)) == (b"bc", b"345")


def test_an_end_is_read_whatever_the_budget(ends: tuple[socket.socket, Stream]) -> None:
    near, stream = ends
    near.shutdown(socket.SHUT_WR)
    side = Side(stream, NOBODY, Allowance(lambda up, down: None))
    assert side.read() == b""
    side.finish()
    assert near.recv(1) == b""
    assert not stream.closed
    side.has_ended = True
    side.finish()
    assert stream.closed
