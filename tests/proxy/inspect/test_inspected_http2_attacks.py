"""Clients and servers of HTTP/2 that attack: refused with an error of the protocol, recorded, in bounded memory. The
worker serves the next connection (attacks 25, 42, 237 to 239)."""

from __future__ import annotations

import contextlib
import ssl
import time
from collections.abc import Iterator

import pytest

from tests.rig.certificates import CertificateAuthority
from tests.rig.https_canary import HttpsCanary, https_canary
from tests.rig.inspecting import HOST, EngineBench, ScriptedFlow, all_of, resident, wait_for

pytest.importorskip("mitmproxy")

import hpack
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from tests.rig.h2_peers import H2Canary, H2Client, Headers, h2_canary
from tests.rig.raw_tls_server import raw_tls_server

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MAX_GROWTH = 30_000_000


@pytest.fixture(scope="module")
def everyone(ca: CertificateAuthority) -> Iterator[tuple[EngineBench, H2Canary]]:
    """One engine for all of these: nobody may break it for the next."""
    with h2_canary(ca.issue(HOST)) as upstream:
        bench = EngineBench(ca.cert, upstream.port)
        yield bench, upstream
        bench.close()


@pytest.fixture
def two(everyone: tuple[EngineBench, H2Canary]) -> Iterator[EngineBench]:
    bench = everyone[0]
    everyone[1].requests.clear()
    assert works(bench)
    everyone[1].requests.clear()
    before = bench.worker()
    yield bench
    assert bench.worker() == before, "the worker was ended"
    assert works(bench)


@pytest.fixture
def upstream(everyone: tuple[EngineBench, H2Canary]) -> H2Canary:
    return everyone[1]


def works(bench: EngineBench) -> bool:
    sock, _ = bench.secured(("h2",))
    client = H2Client(sock)
    answer = client.answer(client.request(head(bench.port, "/ok/1")))
    sock.close()
    return answer == ({":status": "200"}, b"xxxxx")


def head(port: int, path: str, method: str = "GET", *more: tuple[str, str]) -> Headers:
    return [(":method", method), (":scheme", "https"), (":authority", f"{HOST}:{port}"), (":path", path), *more]


def block(headers: Headers) -> bytes:
    return bytes(hpack.Encoder().encode(headers))


def headers_frame(stream: int, data: bytes, *flags: str) -> Frame:
    return HeadersFrame(stream, data, flags=[*flags])


def sent(bench: EngineBench, *frames: Frame, times: int = 1) -> tuple[bytes, ScriptedFlow]:
    """What comes back for these frames."""
    sock, flow = bench.secured(("h2",))
    sock.settimeout(2)
    data = b"".join(frame.serialize() for frame in frames)
    with contextlib.suppress(OSError):
        sock.sendall(PREFACE + SettingsFrame(0).serialize())
        for _ in range(times):
            sock.sendall(data)
    return all_of(sock), flow


def kinds(data: bytes) -> list[str]:
    """The names of the frames in *data*."""
    found = []
    while len(data) >= 9:
        frame, length = Frame.parse_frame_header(memoryview(data)[:9])
        found.append(type(frame).__name__)
        data = data[9 + length :]
    return found


@pytest.mark.parametrize(
    "headers",
    [
        head(0, "/ok", "GET", ("x", "a\0b")),
        head(0, "/ok", "GET", ("x\0", "a")),
        head(0, "/ok", "GET", ("x", "a\nb")),
        head(0, "/ok", "GET", ("", "a")),
        head(0, "/ok", "GET", ("x y", "a")),
        head(0, "/ok", "GET", ("x:y", "a")),
        head(0, "/ok\0"),
        head(0, "/ok /no"),
        head(0, ""),
        head(0, "ok"),
        head(0, "https://other.test/ok"),
        head(0, "/ok", ""),
        head(0, "/ok", "GE T"),
        head(0, "/ok", "GET", (":path", "/no")),
        head(0, "/ok", "GET", ("x", "y"), (":authority", "other.test")),
        head(0, "/ok", "GET", (":unknown", "y")),
        head(0, "/ok", "GET", ("transfer-encoding", "chunked")),
        head(0, "/ok", "GET", ("connection", "keep-alive")),
        head(0, "/ok", "GET", ("te", "chunked")),
        head(0, "/ok", "GET", ("host", "other.test")),
        head(0, "/ok", "GET", ("content-length", "5")),
        head(0, "/ok", "GET", ("content-length", "1, 2")),
        [(":method", "GET"), (":scheme", "https"), (":authority", "user@allowed.test:0"), (":path", "/ok")],
        [(":method", "GET"), (":scheme", "https"), (":authority", "allowed.test:0\0"), (":path", "/ok")],
        [(":method", "GET"), (":scheme", "https"), (":authority", "allowed.test:0\r\nx: y"), (":path", "/ok")],
        [(":method", "GET"), (":authority", "allowed.test:0"), (":path", "/ok")],
        [(":scheme", "https"), (":authority", "allowed.test:0"), (":path", "/ok")],
        [(":method", "CONNECT"), (":protocol", "websocket"), *head(0, "/ok")[1:]],
    ],
    ids=str,
)  # fmt: skip
def test_a_malformed_head_goes_nowhere(two: EngineBench, upstream: H2Canary, headers: Headers) -> None:
    sock, flow = two.secured(("h2",))
    client = H2Client(sock)
    placed = [(name, value.replace(":0", f":{two.port}") if name == ":authority" else value) for name, value in headers]
    answer, _ = client.answer(client.request(placed))
    assert "reset" in answer or answer[":status"].startswith("4"), answer
    assert upstream.requests == []
    assert wait_for(lambda: flow.refusals), answer


def test_heads_without_an_end_are_bounded(two: EngineBench, upstream: H2Canary) -> None:
    before = resident(two.worker())
    more = [ContinuationFrame(1, b"\x00\x01x\x7f\xff\xff\x03" + b"y" * 16000) for _ in range(100)]
    answer, flow = sent(two, headers_frame(1, b""), *more, times=10)
    assert "GoAwayFrame" in kinds(answer) or answer.endswith(b"[reset]"), answer
    assert wait_for(lambda: "malformed" in flow.refusals)
    assert resident(two.worker()) - before < MAX_GROWTH
    assert upstream.requests == []


def test_a_small_frame_that_becomes_a_large_head_is_refused(two: EngineBench, upstream: H2Canary) -> None:
    """A bomb for HPACK: one entry of the table, named ten thousand times."""
    before = resident(two.worker())
    entry = block(head(two.port, "/ok")) + b"\x40\x01x\x7f\x81\x1f" + b"y" * 4096
    answer, flow = sent(two, headers_frame(1, entry + b"\xbe" * 12000, "END_HEADERS", "END_STREAM"))
    assert "GoAwayFrame" in kinds(answer), answer
    assert wait_for(lambda: "malformed" in flow.refusals)
    assert resident(two.worker()) - before < MAX_GROWTH
    assert upstream.requests == []


def test_a_flood_of_resets_is_bounded(two: EngineBench) -> None:
    """Each stream is asked about and cancelled at once (CVE-2023-44487)."""
    before = resident(two.worker())
    sock, flow = two.secured(("h2",))
    sock.settimeout(5)
    encoder = hpack.Encoder()
    sock.sendall(PREFACE + SettingsFrame(0).serialize())
    with contextlib.suppress(OSError):
        for number in range(3000):
            data = encoder.encode(head(two.port, "/ok"))
            frames = HeadersFrame(2 * number + 1, data, flags=["END_HEADERS", "END_STREAM"]).serialize()
            sock.sendall(frames + RstStreamFrame(2 * number + 1, 8).serialize())
    sock.close()
    assert wait_for(lambda: flow.end, 60)
    assert not flow.is_lost
    assert resident(two.worker()) - before < MAX_GROWTH


@pytest.mark.parametrize(
    ("frame", "times"),
    [(PingFrame(0, b"12345678"), 1500), (SettingsFrame(0, {1: 4096}), 1500), (WindowUpdateFrame(0, 1), 60)],
    ids=["ping", "settings", "window"],
)
def test_a_flood_of_control_frames_is_bounded(two: EngineBench, frame: Frame, times: int) -> None:
    """The client takes no answer."""
    before = resident(two.worker())
    sock, _ = two.secured(("h2",))
    sock.settimeout(1)
    data = frame.serialize() * 3000
    with contextlib.suppress(OSError):
        sock.sendall(PREFACE + SettingsFrame(0).serialize())
        for _ in range(times):
            sock.sendall(data)
    assert resident(two.worker()) - before < MAX_GROWTH
    sock.close()


@pytest.mark.parametrize("window", [0, 1])
def test_a_window_that_stays_shut_pauses_the_server(two: EngineBench, upstream: H2Canary, window: int) -> None:
    before, upstream.sent = resident(two.worker()), 0
    sock, _ = two.secured(("h2",))
    client = H2Client(sock, window=window)
    for _ in range(4):
        client.request(head(two.port, "/ok/big/100000000"))
    assert wait_for(lambda: upstream.sent > 100_000)
    time.sleep(1)
    assert resident(two.worker()) - before < MAX_GROWTH
    sock.close()


def test_the_endless_body_of_a_refused_request_is_dropped(two: EngineBench, upstream: H2Canary) -> None:
    before = resident(two.worker())
    start = headers_frame(1, block(head(two.port, "/no", "POST")), "END_HEADERS")
    sock, flow = two.secured(("h2",))
    sock.settimeout(2)
    sock.sendall(PREFACE + SettingsFrame(0).serialize() + start.serialize())
    chunk = DataFrame(1, b"x" * 16384).serialize() * 4
    with contextlib.suppress(OSError):
        for _ in range(1000):
            sock.sendall(chunk)
    assert "HeadersFrame" in kinds(all_of(sock))
    assert wait_for(lambda: flow.end)
    assert upstream.requests == []
    assert resident(two.worker()) - before < MAX_GROWTH


def test_trailers_pass_in_both_directions(two: EngineBench, upstream: H2Canary) -> None:
    sock, _ = two.secured(("h2",))
    client = H2Client(sock)
    kind = ("content-type", "application/grpc")
    stream = client.request(head(two.port, "/ok.Service/Do", "POST", kind), body=b"\0\0\0\0\0", end=False)
    client.conn.send_headers(stream, [("x-end", "y")], end_stream=True)
    sock.sendall(client.conn.data_to_send())
    headers, _ = client.answer(stream)
    assert headers["grpc-status"] == "0"


def test_trailers_do_not_name_another_host(two: EngineBench, upstream: H2Canary) -> None:
    sock, _ = two.secured(("h2",))
    client = H2Client(sock)
    stream = client.request(head(two.port, "/ok", "POST"), body=b"x", end=False)
    client.conn.send_headers(stream, [(":path", "/no"), (":authority", "other.test")], end_stream=True)
    sock.sendall(client.conn.data_to_send())
    client.answer(stream)
    assert [each[":path"] for each in upstream.requests] in ([], ["/ok"])


# To a server of HTTP/1


@pytest.fixture(scope="module")
def one(ca: CertificateAuthority) -> Iterator[tuple[EngineBench, HttpsCanary]]:
    with https_canary(ca.issue(HOST)) as server:
        bench = EngineBench(ca.cert, server.port)
        yield bench, server
        bench.close()


@pytest.mark.attack(302)
@pytest.mark.parametrize("method", ["POST", "GET", "HEAD"])
def test_a_body_without_a_length_is_no_second_request(one: tuple[EngineBench, HttpsCanary], method: str) -> None:
    """A server of HTTP/1 may ignore the body of a GET, so it gets none that was not announced."""
    bench, server = one
    server.requests.clear()
    server.bodies.clear()
    smuggled = f"GET /no HTTP/1.1\r\nHost: {HOST}:{bench.port}\r\n\r\n".encode()
    sock, flow = bench.secured(("h2",))
    client = H2Client(sock)
    answer, _ = client.answer(client.request(head(bench.port, "/ok", method), body=smuggled))
    if method == "POST":
        assert answer[":status"] == "200"
        assert server.bodies == [smuggled]
    else:
        assert wait_for(lambda: "malformed" in flow.refusals)
    assert server.requests == [f"{method} /ok"] * (method == "POST")
    assert [each.target for each in flow.asks] == ["/ok"]


def test_a_body_of_another_length_ends_the_request(one: tuple[EngineBench, HttpsCanary]) -> None:
    bench, server = one
    server.requests.clear()
    sock, flow = bench.secured(("h2",))
    client = H2Client(sock)
    smuggled = f"helloGET /no HTTP/1.1\r\nHost: {HOST}:{bench.port}\r\n\r\n".encode()
    answer, _ = client.answer(client.request(head(bench.port, "/ok", "POST", ("content-length", "5")), body=smuggled))
    assert "reset" in answer
    assert not [each for each in server.requests if "/no" in each]
    assert wait_for(lambda: "malformed" in flow.refusals)


# Servers


def answering(*frames: Frame, times: int = 1) -> object:
    def serve(sock: ssl.SSLSocket) -> None:
        data = b"".join(frame.serialize() for frame in frames)
        sock.sendall(SettingsFrame(0).serialize())
        time.sleep(0.2)  # until the request is there
        for _ in range(times):
            sock.sendall(data)
        while sock.recv(65536):
            pass

    return serve


OK = bytes(hpack.Encoder().encode([(":status", "200")]))


@pytest.mark.parametrize(
    ("frames", "times"),
    [
        ([PushPromiseFrame(1, 2, OK, flags=["END_HEADERS"])], 1),
        ([HeadersFrame(1, b"")] + [ContinuationFrame(1, b"x" * 16000)] * 100, 10),
        ([PingFrame(0, b"12345678")] * 3000, 300),
        ([SettingsFrame(0, {1: 4096})] * 3000, 300),
        ([HeadersFrame(1, block([(":status", "200"), ("x", "a\r\nset-cookie: b")]), flags=["END_HEADERS"])], 1),
        ([HeadersFrame(1, block([(":status", "abc")]), flags=["END_HEADERS"])], 1),
        ([HeadersFrame(3, OK, flags=["END_HEADERS"])], 1),
        ([DataFrame(1, b"x")], 1),
        ([GoAwayFrame(0, 0, 0)], 1),
        ([RstStreamFrame(1, 2)], 1),
    ],
    ids=["push", "endless head", "ping", "settings", "line break", "status", "stream", "data", "goaway", "reset"],
)
def test_a_server_that_attacks_reaches_nobody(ca: CertificateAuthority, frames: list[Frame], times: int) -> None:
    with raw_tls_server(ca.issue(HOST), answering(*frames, times=times), "h2") as server:  # type: ignore[arg-type]
        bench = EngineBench(ca.cert, server.port)
        try:
            sock, flow = bench.secured(("h2",))
            sock.settimeout(2)
            client = H2Client(sock)
            before = resident(bench.worker())
            stream = client.request(head(bench.port, "/ok"))
            try:
                answer, _ = client.answer(stream)
            except TimeoutError:
                answer = {"reset": "waiting"}
            assert "reset" in answer or answer[":status"] == "502", answer
            assert "set-cookie" not in answer
            assert resident(bench.worker()) - before < MAX_GROWTH
            assert not flow.is_lost
        finally:
            bench.close()
