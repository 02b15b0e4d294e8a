"""HTTP/2 and gRPC: for clients that speak nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.certificates import CertificateAuthority
from tests.rig.https_canary import HttpsCanary
from tests.rig.inspecting import HOST, EngineBench, wait_for

pytest.importorskip("mitmproxy")

from tests.rig.h2_peers import H2Canary, H2Client, Headers, h2_canary


@pytest.fixture
def upstream(ca: CertificateAuthority) -> Iterator[H2Canary]:
    with h2_canary(ca.issue(HOST)) as made:
        yield made


@pytest.fixture
def two(ca: CertificateAuthority, upstream: H2Canary) -> Iterator[EngineBench]:
    made = EngineBench(ca.cert, upstream.port)
    try:
        yield made
    finally:
        made.close()


def head(port: int, path: str, method: str = "GET", *more: tuple[str, str]) -> Headers:
    return [(":method", method), (":scheme", "https"), (":authority", f"{HOST}:{port}"), (":path", path), *more]


def test_requests_are_decided_on_one_by_one(two: EngineBench, upstream: H2Canary) -> None:
    sock, flow = two.secured(("h2",))
    client = H2Client(sock)
    assert client.answer(client.request(head(two.port, "/ok/1"))) == ({":status": "200"}, b"xxxxx")
    refused, body = client.answer(client.request(head(two.port, "/no", "POST"), body=b"x" * 1000))
    assert refused[":status"] == "403"
    assert refused["x-netsandbox-reason"] == "request-denied"
    assert b"not this one" in body
    assert client.answer(client.request(head(two.port, "/ok/2")))[1] == b"xxxxx"
    assert [each[":path"] for each in upstream.requests] == ["/ok/1", "/ok/2"]
    assert [ask.target for ask in flow.asks] == ["/ok/1", "/no", "/ok/2"]


def test_grpc_passes_and_is_refused_with_its_status(two: EngineBench, upstream: H2Canary) -> None:
    sock, _ = two.secured(("h2",))
    client = H2Client(sock)
    kind = ("content-type", "application/grpc")
    headers, body = client.answer(client.request(head(two.port, "/ok.Service/Do", "POST", kind), body=b"\0\0\0\0\0"))
    assert (headers["grpc-status"], body) == ("0", b"\0\0\0\0\2ok")
    headers, _ = client.answer(client.request(head(two.port, "/no.Service/Do", "POST", kind), body=b"\0\0\0\0\0"))
    assert headers[":status"] == "200"
    assert headers["grpc-status"] == "7"
    assert headers["grpc-message"] == "netsandbox: not this one"
    assert len(upstream.requests) == 1


@pytest.mark.parametrize(
    "headers",
    [
        head(0, "/ok", "GET", ("x", "a\r\nhost: other.test")),
        head(0, "/ok", "GET", ("x\r\ny", "a")),
        head(0, "/ok HTTP/1.1\r\nx: y"),
        head(0, "/ok", "GET /no HTTP/1.1\r\n\r\nGET"),
        head(0, "/ok", "GET", ("host", "other.test")),
        [(":method", "GET"), (":scheme", "https"), (":authority", "other.test"), (":path", "/ok")],
        [(":method", "GET"), (":scheme", "https"), (":path", "/ok")],
        [(":method", "CONNECT"), (":authority", "other.test:443")],
    ],
)
def test_what_http1_could_not_carry_goes_nowhere(two: EngineBench, upstream: H2Canary, headers: Headers) -> None:
    sock, _ = two.secured(("h2",))
    client = H2Client(sock)
    placed = [(name, value.replace(":0", f":{two.port}") if name == ":authority" else value) for name, value in headers]
    answer, _ = client.answer(client.request(placed))
    assert "reset" in answer or answer[":status"].startswith("4"), answer
    assert upstream.requests == []


def test_a_window_that_never_opens_costs_bounded_memory(two: EngineBench, upstream: H2Canary) -> None:
    sock, _ = two.secured(("h2",))
    client = H2Client(sock, window=0)
    before = resident(two.worker())
    client.request(head(two.port, "/ok/big/200000000"))
    assert wait_for(lambda: upstream.sent > 100000)
    time.sleep(2)
    assert resident(two.worker()) - before < 30_000_000


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def test_a_client_of_http2_reaches_a_server_of_http1(bench: EngineBench, server: HttpsCanary) -> None:
    sock, _ = bench.secured(("h2",))
    client = H2Client(sock)
    for number in range(3):
        answer, body = client.answer(client.request(head(bench.port, f"/ok/{number}")))
        assert (answer[":status"], body) == ("200", f"answer /ok/{number}\n".encode())


def test_http1_is_chosen_where_the_client_speaks_both(two: EngineBench) -> None:
    sock, _ = two.secured(("h2", "http/1.1"))
    assert sock.selected_alpn_protocol() == "http/1.1"
