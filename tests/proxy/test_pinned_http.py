"""HTTP where the destination is already decided: inside CONNECT and on transparent connections."""

from __future__ import annotations

import socket
from typing import Any

import pytest


def get(host: bytes, path: bytes = b"/") -> bytes:
    return b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (path, host)


def take(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        if not more:
            break
        data += more
    return data


def test_a_host_that_is_the_decided_name_passes_request_after_request(rig: Any, speak: Any) -> None:
    canary = rig.canary(speak.answer_http)
    rig.gate.ports.clear()
    rig.gate.ports["allowed.test"] = canary.port
    client = rig.client(rig.transparent("allowed.test", 80))
    for path in (b"/1", b"/2", b"/3"):
        client.sendall(get(b"allowed.test", path))
        assert speak.read_head(client).startswith(b"HTTP/1.1 200 ")
        assert take(client, len(path) + 13) == b"GET %s HTTP/1.1" % path
    client.close()
    rig.settle()
    assert canary.accepts == 1
    assert [call[0] for call in rig.gate.calls] == ["admit", "dialling", "ended"]
    up, down, outcome = rig.gate.named("ended")[0][3:]
    assert outcome == "http"
    assert up == len(canary.heard)
    assert down > 0


@pytest.mark.attack(22)
@pytest.mark.attack(56)
def test_another_host_is_421_and_never_reaches_the_server(rig: Any, speak: Any) -> None:
    canary = rig.canary(speak.answer_http)
    client = rig.tunnel(rig.mixed(), "allowed.test:80")
    client.sendall(get(b"denied.test"))
    assert speak.read_all(client).startswith(b"HTTP/1.1 421 ")
    assert canary.everything() == b""
    assert rig.gate.named("refuse") == [("refuse", "allowed.test", "host-mismatch")]
    assert rig.gate.named("ended")[0][5] == "refused"


@pytest.mark.attack(25)
def test_the_host_is_compared_on_every_request_and_in_one_segment_too(rig: Any, speak: Any) -> None:
    canary = rig.canary(speak.answer_http)
    host = b"allowed.test:%d" % canary.port
    client = rig.tunnel(rig.mixed(), "allowed.test:80")
    client.sendall(get(host, b"/1") + get(b"denied.test", b"/2") + get(host, b"/3"))
    answer = speak.read_all(client)
    assert b"GET /1" in answer
    assert b"HTTP/1.1 421 " in answer
    assert b"/2" not in canary.everything()
    assert b"/3" not in canary.heard


@pytest.mark.attack(35)
def test_a_websocket_inside_connect_is_opaque_after_the_101(rig: Any, speak: Any) -> None:
    def socketeer(canary: Any, peer: socket.socket) -> None:
        canary.hear(peer)
        peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        while data := canary.hear(peer):
            peer.sendall(data)

    canary = rig.canary(socketeer)
    client = rig.tunnel(rig.mixed(), "allowed.test:80")
    head = b"GET / HTTP/1.1\r\nHost: allowed.test:%d\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" % canary.port
    client.sendall(head + b"early")
    assert speak.read_head(client).startswith(b"HTTP/1.1 101 ")
    assert client.recv(5) == b"early"
    client.close()
    rig.settle()
    assert rig.gate.named("ended")[0][5] == "http"


@pytest.mark.attack(24)
@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: allowed.test\r\nHost: denied.test\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : allowed.test\r\n\r\n",
        b"GET / HTTP/1.1\nHost: denied.test\n\n",
        b"CONNECT denied.test:443 HTTP/1.1\r\nHost: denied.test:443\r\n\r\n",
        b"get  / http/1.1\r\n\r\n",
    ],
)
def test_a_head_that_two_parsers_could_read_differently_goes_nowhere(rig: Any, speak: Any, head: bytes) -> None:
    canary = rig.canary(speak.answer_http)
    client = rig.tunnel(rig.mixed(), "allowed.test:80")
    client.sendall(head)
    assert speak.read_all(client).startswith(b"HTTP/1.1 4")
    assert canary.everything() == b""
    assert len(rig.gate.named("refuse")) == 1


def test_a_server_that_closes_between_requests_closes_the_client(rig: Any, speak: Any) -> None:
    def once(canary: Any, peer: socket.socket) -> None:
        canary.hear(peer)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    canary = rig.canary(once)
    client = rig.tunnel(rig.mixed(), "allowed.test:80")
    client.sendall(get(b"allowed.test:%d" % canary.port))
    assert speak.read_all(client).endswith(b"ok")
    rig.settle()
    assert rig.gate.named("ended")[0][5] == "http"


# Heads that were parsed before.


def exchanged(rig: Any, speak: Any, client: socket.socket, *parts: bytes) -> bytes:
    """Send a request in parts, each read by the door before the next, and return the response."""
    for part in parts:
        client.sendall(part)
        rig.wait_until_read(client)
    head: bytes = speak.read_head(client)
    size = int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0])
    return head.split(b"\r\n")[0] + take(client, size)


def test_a_repeated_head_is_rewritten_like_the_first_wherever_it_is_cut(rig: Any, speak: Any) -> None:
    canary = rig.canary(speak.answer_http)
    door = rig.mixed()
    request = b"GET /once HTTP/1.1\r\nHost: ALLOWED.test\r\nProxy-Secret: 1\r\n\r\n"
    cuts = (0, 0, 1, 18, len(request) - 4, len(request) - 2, len(request) - 1)
    client = rig.tunnel(door, "allowed.test:80")
    for at in cuts:
        for stream in (client, rig.tunnel(door, "allowed.test:80")):
            parts = [part for part in (request[:at], request[at:]) if part]
            assert exchanged(rig, speak, stream, *parts) == b"HTTP/1.1 200 OKGET /once HTTP/1.1"
    client.close()
    forwarded = b"GET /once HTTP/1.1\r\nHost: allowed.test:%d\r\n\r\n" % canary.port
    rig.close_clients()
    assert canary.everything() == forwarded * 2 * len(cuts)


@pytest.mark.attack(22)
def test_a_repeated_head_goes_to_the_host_of_its_own_connection(rig: Any, speak: Any) -> None:
    """A head without Host, which HTTP/1.0 allows, is the same bytes for every destination."""
    first, second = rig.canary(speak.answer_http), rig.canary(speak.answer_http, "other.test")
    door = rig.mixed()
    for _ in range(2):
        for name in ("allowed.test:80", "other.test:80"):
            client = rig.tunnel(door, name)
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert speak.read_head(client).startswith(b"HTTP/1.1 200 ")
    rig.close_clients()
    assert first.everything().count(b"Host: allowed.test:%d\r\n" % first.port) == 2
    assert second.everything().count(b"Host: other.test:%d\r\n" % second.port) == 2
    assert b"other" not in first.heard
    assert b"allowed" not in second.heard


def test_the_bytes_behind_a_repeated_head_are_its_body_or_the_next_request(rig: Any, speak: Any) -> None:
    canary = rig.canary(speak.answer_http)
    client = rig.tunnel(rig.mixed(), "allowed.test:80")
    for _ in range(2):
        exchanged(rig, speak, client, get(b"allowed.test"))
    client.sendall(get(b"allowed.test") + get(b"denied.test"))
    assert b"HTTP/1.1 421 " in speak.read_all(client)
    assert canary.everything().count(b"GET ") == 3


# First lines that are almost HTTP, and methods that are never forwarded.


@pytest.mark.attack(227)
@pytest.mark.parametrize("line", [b"A:B / HTTP/1.1", b"MKCOL \0 HTTP/1.1", b"{A / HTTP/1.1", b"MKCOL\r/ HTTP/1.1"])
def test_a_first_line_that_is_almost_http_does_not_switch_the_host_check_off(rig: Any, speak: Any, line: bytes) -> None:
    canary = rig.canary(speak.answer_http)
    for cut in (0, 1, len(line)):
        client = rig.tunnel(rig.mixed(), "allowed.test:80")
        rest = line[cut:] + b"\r\nHost: allowed.test\r\n\r\n" + get(b"denied.test")
        for part in (line[:cut], rest):
            client.sendall(part)
            rig.wait_until_read(client)
        assert speak.read_all(client).startswith(b"HTTP/1.1 400 ")
    assert canary.everything() == b""
    assert rig.gate.named("refuse") == [("refuse", "allowed.test", "malformed")] * 3


def test_a_text_protocol_that_is_not_http_still_passes(rig: Any, speak: Any) -> None:
    canary = rig.canary(speak.echo)
    for line in (b"NICK a:b HTTP\r\n", b"a:b hello\n", b'{"id": 1}\n', b"0032git-upload-pack /x.git\0host=a.test\0"):
        client = rig.tunnel(rig.mixed(), "allowed.test:80")
        client.sendall(line)
        assert take(client, len(line)) == line
        client.close()
    assert canary.accepts == 4


@pytest.mark.attack(223)
@pytest.mark.parametrize("method", [b"TRACE", b"TRACK", b"trace"])
def test_trace_is_405_in_a_tunnel_and_never_forwarded(rig: Any, speak: Any, method: bytes) -> None:
    canary = rig.canary(speak.answer_http)
    client = rig.tunnel(rig.mixed(), "allowed.test:80")
    exchanged(rig, speak, client, get(b"allowed.test"))
    client.sendall(get(b"allowed.test").replace(b"GET", method))
    assert speak.read_all(client).startswith(b"HTTP/1.1 405 ")
    assert canary.everything().count(b"HTTP/1.1\r\n") == 1
    assert rig.gate.named("refuse") == [("refuse", "allowed.test", "unsupported")]
