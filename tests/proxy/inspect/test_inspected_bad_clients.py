"""Clients that send what no client should, over HTTP/1: each is refused with the protocol's error, recorded, and costs
bounded memory (attacks 25, 42 and 237)."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterator

import pytest

from tests.rig.certificates import CertificateAuthority
from tests.rig.https_canary import HttpsCanary, https_canary
from tests.rig.inspecting import HOST, EngineBench, ScriptedFlow, all_of, resident, wait_for

pytest.importorskip("mitmproxy")

from OpenSSL import SSL


@pytest.fixture(scope="module")
def everyone(ca: CertificateAuthority) -> Iterator[tuple[EngineBench, HttpsCanary]]:
    """One engine for all of these: nobody may break it for the next."""
    with https_canary(ca.issue(HOST)) as server:
        bench = EngineBench(ca.cert, server.port)
        yield bench, server
        bench.close()


@pytest.fixture
def server(everyone: tuple[EngineBench, HttpsCanary]) -> HttpsCanary:
    everyone[1].requests.clear()
    everyone[1].heads.clear()
    return everyone[1]


@pytest.fixture
def bench(everyone: tuple[EngineBench, HttpsCanary]) -> EngineBench:
    return everyone[0]


HOST_LINE = f"Host: {HOST}:PORT\r\n"
CHUNKED = "Transfer-Encoding: chunked\r\n"
MORE = "GET /ok/smuggled HTTP/1.1\r\nHost: allowed.test:PORT\r\n\r\n"


def exchange(bench: EngineBench, text: str) -> tuple[bytes, ScriptedFlow]:
    client, flow = bench.secured()
    client.settimeout(3)
    with contextlib.suppress(OSError):
        client.sendall(text.replace("PORT", str(bench.port)).encode("latin-1"))
    return all_of(client), flow


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", f"0\r\n\r\n{MORE}"),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", "hello"),
        ("Content-Length: 0, 5\r\n", "hello"),
        ("Content-Length: +5\r\n", "hello"),
        ("Content-Length: -1\r\n", "hello"),
        ("Content-Length: 5_0\r\n", "hello"),
        ("Content-Length: 0x5\r\n", "hello"),
        ("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: identity\r\n", MORE),
        ("Transfer-Encoding: gzip\r\n", "x"),
        ("Transfer-Encoding : chunked\r\n", f"0\r\n\r\n{MORE}"),
        ("X: y\r\n Transfer-Encoding: chunked\r\n", f"0\r\n\r\n{MORE}"),
        ("X: y\rTransfer-Encoding: chunked\r\n", f"0\r\n\r\n{MORE}"),
        ("X: a\0b\r\n", ""),
        (": no name\r\n", ""),
        ("no colon\r\n", ""),
        ("X\x80: y\r\n", ""),
    ],
)  # fmt: skip
def test_a_head_that_two_servers_could_read_differently_goes_nowhere(
    bench: EngineBench, server: HttpsCanary, fields: str, body: str
) -> None:
    answer, flow = exchange(bench, f"POST /ok HTTP/1.1\r\n{HOST_LINE}{fields}Connection: close\r\n\r\n{body}")
    assert server.requests == [], (answer, flow.asks)
    assert answer.startswith(b"HTTP/1.1 4") or answer == b" [reset]", answer
    assert wait_for(lambda: flow.refusals), answer


@pytest.mark.parametrize(
    "chunks",
    ["-1\r\nx\r\n", "0x1\r\nx\r\n", "1\nx\n0\n\n", "g\r\n", "1\r\nxx\r\n0\r\n\r\n", "fffffffffffffffffffff\r\n"],
)
def test_a_chunk_that_is_none_ends_the_request(bench: EngineBench, server: HttpsCanary, chunks: str) -> None:
    answer, flow = exchange(bench, f"POST /ok HTTP/1.1\r\n{HOST_LINE}{CHUNKED}\r\n{chunks}{MORE}")
    assert not [each for each in server.requests if "smuggled" in each], answer
    assert wait_for(lambda: [each.target for each in flow.asks] == ["/ok"])
    assert wait_for(lambda: "malformed" in flow.refusals), answer


@pytest.mark.parametrize(
    "start",
    [
        "GET http://other.test/ok HTTP/1.1",
        "GET https://other.test/ok HTTP/1.1",
        "GET https://allowed.test@other.test/ok HTTP/1.1",
        "GET //other.test/ok HTTP/1.1",
        "GET /ok",
        "GET /ok HTTP/1.1 HTTP/1.1",
        "GET /ok HTTP/3.0",
        "G\x00T /ok HTTP/1.1",
        "PRI * HTTP/2.0",
    ],
)
def test_a_request_line_that_is_none_goes_nowhere(bench: EngineBench, server: HttpsCanary, start: str) -> None:
    answer, flow = exchange(bench, f"{start}\r\n{HOST_LINE}Connection: close\r\n\r\n")
    assert server.requests == [], answer
    assert not answer.startswith(b"HTTP/1.1 2"), answer
    assert wait_for(lambda: flow.refusals or flow.asks), answer


@pytest.mark.parametrize("text", ["GET /ok HTTP/1.1\r\nX: ", "", "GET /ok", "GET /ok HTTP/1.1\r\n"])
def test_a_head_without_an_end_is_answered_and_bounded(bench: EngineBench, server: HttpsCanary, text: str) -> None:
    client, flow = bench.secured()
    client.settimeout(3)
    before = resident(bench.worker())
    line = b"y: " + b"z" * 61 + b"\r\n" if text.endswith("\n") else b"y" * 66
    with contextlib.suppress(OSError):
        client.sendall(text.encode())
        for _ in range(400):
            client.sendall(line * 1024)
    assert all_of(client).startswith((b"HTTP/1.1 431 ", b" [reset]"))
    assert wait_for(lambda: flow.end)
    assert flow.refusals == ["malformed"]
    assert server.requests == []
    assert resident(bench.worker()) - before < 10_000_000


def test_a_head_that_is_too_long_is_answered(bench: EngineBench, server: HttpsCanary) -> None:
    for lines, status in ((20, b"200"), (30, b"431")):
        fields = f"X: {'y' * 9995}\r\n" * lines
        answer, _ = exchange(bench, f"GET /ok HTTP/1.1\r\n{HOST_LINE}{fields}Connection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 %s " % status), answer[:200]
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "fields",
    [
        "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n",
        "Upgrade: websocket, h2c\r\nConnection: Upgrade\r\n",
        "Upgrade: tls/1.2\r\nConnection: upgrade\r\n",
    ],
)
def test_other_upgrades_are_ordinary_requests(bench: EngineBench, server: HttpsCanary, fields: str) -> None:
    """Each request behind it is asked about."""
    text = f"GET /ok/1 HTTP/1.1\r\n{HOST_LINE}{fields}\r\nGET /no HTTP/1.1\r\n{HOST_LINE}Connection: close\r\n\r\n"
    answer, flow = exchange(bench, text)
    assert b"403" in answer
    assert server.requests == ["GET /ok/1"]
    assert "upgrade" not in server.heads[0]
    assert [each.target for each in flow.asks] == ["/ok/1", "/no"]


@pytest.mark.attack(302)
@pytest.mark.parametrize("fields", [f"Content-Length: {len(MORE)}\r\n", CHUNKED, "Content-Length: 0\r\n", ""])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_supervisor_hears_of_a_body_where_none_belongs(
    bench: EngineBench, server: HttpsCanary, method: str, fields: str
) -> None:
    _, flow = exchange(bench, f"{method} /no HTTP/1.1\r\n{HOST_LINE}{fields}Connection: close\r\n\r\n")
    assert [each.is_unclear for each in flow.asks] == [method == "GET" and fields not in ("", "Content-Length: 0\r\n")]
    assert server.requests == []


def test_a_websocket_by_post_is_an_ordinary_request(bench: EngineBench, server: HttpsCanary) -> None:
    fields = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\nContent-Length: 0\r\n"
    text = f"POST /ok HTTP/1.1\r\n{HOST_LINE}{fields}\r\nGET /no HTTP/1.1\r\n{HOST_LINE}Connection: close\r\n\r\n"
    _, flow = exchange(bench, text)
    assert server.requests == ["POST /ok"]
    assert "upgrade" not in server.heads[0]
    assert len(flow.asks) == 2


@pytest.mark.parametrize("name", [b"other.test", b"allowed.test"])
def test_a_second_hello_changes_nothing(bench: EngineBench, server: HttpsCanary, name: bytes) -> None:
    """Renegotiation in TLS 1.2 would let a client name another host."""
    near, flow = bench.connect()
    context = SSL.Context(SSL.TLS_METHOD)
    context.set_max_proto_version(SSL.TLS1_2_VERSION)
    near.settimeout(None)
    tls = SSL.Connection(context, near)
    tls.set_tlsext_host_name(HOST.encode())
    tls.set_connect_state()
    tls.do_handshake()
    tls.set_tlsext_host_name(name)
    tls.renegotiate()
    near.setblocking(False)
    for _ in range(3):
        with pytest.raises(SSL.Error):  # nothing comes, or an alert
            tls.do_handshake()
        select.select([near], [], [], 0.2)
    near.shutdown(socket.SHUT_RDWR)
    assert wait_for(lambda: flow.end)
    assert server.requests == []


def test_the_case_of_a_name_does_not_matter(bench: EngineBench, server: HttpsCanary) -> None:
    near, _ = bench.connect()
    context = SSL.Context(SSL.TLS_METHOD)
    near.settimeout(None)
    tls = SSL.Connection(context, near)
    tls.set_tlsext_host_name(b"Allowed.TEST")
    tls.set_connect_state()
    tls.do_handshake()
    tls.sendall(f"GET /ok HTTP/1.1\r\nHost: Allowed.TEST:{server.port}\r\nConnection: close\r\n\r\n".encode())
    assert tls.recv(100).startswith(b"HTTP/1.1 200 ")
