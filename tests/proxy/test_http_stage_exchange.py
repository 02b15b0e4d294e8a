"""Long answers go by splice, to their last byte and no further, whatever frames them and however slow the client is."""

from __future__ import annotations

import hashlib
import os
import socket
import time
from typing import Any

import pytest

SIZE = 3 * 1024 * 1024 + 17
BODY = os.urandom(SIZE)
LENGTH_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SIZE
CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CLOSE_HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"


def chunked(body: bytes) -> bytes:
    cuts = [body[:1], body[1 : SIZE // 2], body[SIZE // 2 :]]
    return b"".join(b"%x\r\n%s\r\n" % (len(cut), cut) for cut in cuts) + b"0\r\n\r\n"


def serving(answer: bytes, *, stay: bool = True) -> Any:
    def serve(canary: Any, peer: socket.socket) -> None:
        while canary.hear(peer):
            peer.sendall(answer)
            if not stay:
                return

    return serve


def take(client: socket.socket, size: int) -> bytes:
    parts = []
    while size and (part := client.recv(min(size, 1 << 16))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


@pytest.mark.parametrize("answer", [LENGTH_HEAD + BODY, CHUNKED_HEAD + chunked(BODY)], ids=["length", "chunked"])
def test_a_long_answer_arrives_whole_and_the_next_one_too(rig: Any, answer: bytes) -> None:
    canary = rig.canary(serving(answer))
    client = rig.tunnel(rig.mixed(), "allowed.test:80")
    for _ in range(3):
        client.sendall(b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
        assert hashlib.sha256(take(client, len(answer))).digest() == hashlib.sha256(answer).digest()
    client.close()
    rig.settle()
    assert canary.accepts == 1
    assert rig.gate.named("ended")[0][4] == 3 * len(answer)


def test_an_answer_that_ends_with_the_connection_arrives_whole(rig: Any) -> None:
    rig.canary(serving(CLOSE_HEAD + BODY, stay=False))
    client = rig.tunnel(rig.mixed(), "allowed.test:80")
    client.sendall(b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
    assert take(client, 1 << 30) == CLOSE_HEAD + BODY
    client.close()
    rig.settle()
    assert rig.gate.named("ended")[0][4] == len(CLOSE_HEAD + BODY)


def test_a_client_that_reads_late_gets_every_byte(rig: Any) -> None:
    answer = LENGTH_HEAD + BODY
    rig.canary(serving(answer))
    client = rig.client(rig.mixed(), receive_buffer=4096)
    client.sendall(b"CONNECT allowed.test:80 HTTP/1.1\r\nHost: allowed.test:80\r\n\r\n")
    assert client.recv(65536).startswith(b"HTTP/1.1 200")
    client.sendall(b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
    time.sleep(0.2)  # everything on the way is full by now
    assert take(client, len(answer)) == answer


def test_bytes_behind_a_long_answer_are_not_the_clients(rig: Any) -> None:
    """A smuggled second response goes nowhere, and the connection is not used again."""
    answer = LENGTH_HEAD + BODY
    rig.canary(serving(answer + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"))
    client = rig.tunnel(rig.mixed(), "allowed.test:80")
    client.sendall(b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
    assert take(client, len(answer)) == answer
    client.sendall(b"GET /2 HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
    try:
        rest = take(client, 1 << 20)
    except ConnectionError:
        rest = b""
    assert b"evil" not in rest


def test_an_answer_cut_short_is_not_taken_for_the_whole(rig: Any) -> None:
    rig.canary(serving(LENGTH_HEAD + BODY[: SIZE // 2], stay=False))
    client = rig.tunnel(rig.mixed(), "allowed.test:80")
    client.sendall(b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
    with pytest.raises(ConnectionResetError):
        take(client, 1 << 30)
