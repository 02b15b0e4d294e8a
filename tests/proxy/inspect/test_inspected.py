"""One inspected connection over HTTP/1, in a real engine."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from tests.rig.https_canary import HttpsCanary
from tests.rig.inspecting import HOST, EngineBench, wait_for


def head(port: int, path: str, method: str = "GET", more: str = "") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\n{more}\r\n".encode()


def test_requests_of_one_connection_are_asked_about_one_by_one(bench: EngineBench, server: HttpsCanary) -> None:
    client, flow = bench.secured()
    client.sendall(head(server.port, "/ok/1") + head(server.port, "/no") + head(server.port, "/ok/2"))
    answer = b""
    while answer.count(b"HTTP/1.1 ") < 3 or not answer.endswith(b"/ok/2\n"):
        answer += client.recv(65536)
    assert server.requests == ["GET /ok/1", "GET /ok/2"]
    assert [ask.target for ask in flow.asks] == ["/ok/1", "/no", "/ok/2"]


def test_the_body_of_a_refused_request_is_not_kept(bench: EngineBench, server: HttpsCanary) -> None:
    client, _ = bench.secured()
    client.sendall(head(server.port, "/no", "POST", "Content-Length: 2000000000\r\n"))
    assert client.recv(65536).startswith(b"HTTP/1.1 403 ")  # at once
    before = resident(bench.worker())
    try:
        for _ in range(400):
            client.sendall(b"x" * 65536)
    except OSError:
        pass
    assert resident(bench.worker()) - before < 10_000_000
    assert server.requests == []


def test_a_client_that_does_not_read_stops_the_server(bench: EngineBench, server: HttpsCanary) -> None:
    client, _ = bench.secured()
    before = resident(bench.worker())
    client.sendall(head(server.port, "/ok/big/100000000"))
    time.sleep(1.5)
    assert resident(bench.worker()) - before < 10_000_000


def test_trailers_are_refused(bench: EngineBench, server: HttpsCanary) -> None:
    client, flow = bench.secured()
    client.sendall(head(server.port, "/ok", "POST", "Transfer-Encoding: chunked\r\n") + b"1\r\nx\r\n0\r\nA: b\r\n\r\n")
    assert wait_for(lambda: flow.end)
    assert "malformed" in flow.refusals


def test_a_chunk_size_without_an_end_is_bounded(bench: EngineBench, server: HttpsCanary) -> None:
    client, flow = bench.secured()
    client.sendall(head(server.port, "/ok", "POST", "Transfer-Encoding: chunked\r\n"))
    try:
        for _ in range(100):
            client.sendall(b"0" * 65536)
    except OSError:
        pass
    assert wait_for(lambda: flow.end)


def test_a_hello_for_another_name_is_refused(bench: EngineBench) -> None:
    import ssl

    near, flow = bench.connect()
    context = ssl.create_default_context(cadata=bench.pem)
    try:
        context.wrap_socket(near, server_hostname="other.test").close()
    except OSError:
        pass
    assert wait_for(lambda: flow.end)
    assert "sni-mismatch" in flow.refusals


def test_a_server_that_closes_is_dialled_again(bench: EngineBench, server: HttpsCanary) -> None:
    client, flow = bench.secured()
    for number in range(3):
        client.sendall(head(server.port, f"/ok/{number}", more=""))
        answer = b""
        while not answer.endswith(b"\n") or b"answer" not in answer:
            answer += client.recv(65536)
        for sock in flow.sockets[1:]:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        time.sleep(0.1)
    assert len(server.requests) == 3
    assert len(flow.sockets) > 2


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
