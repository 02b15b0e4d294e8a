"""Servers that answer what no server should: the client gets an error of the protocol, memory stays bounded, and a
certificate that is not right means that the server gets no request (attack 239)."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.rig.certificates import CertificateAuthority
from tests.rig.inspecting import HOST, EngineBench, ScriptedFlow, all_of, resident, wait_for

pytest.importorskip("mitmproxy")

from tests.rig.raw_tls_server import RawTlsServer, odd_leaf, raw_tls_server

Serve = Callable[[ssl.SSLSocket], object]


@contextlib.contextmanager
def engine(ca: CertificateAuthority, server: RawTlsServer) -> Iterator[EngineBench]:
    bench = EngineBench(ca.cert, server.port)
    try:
        yield bench
    finally:
        bench.close()


def ask(bench: EngineBench, fields: str = "Connection: close\r\n", path: str = "/ok") -> tuple[bytes, ScriptedFlow]:
    client, flow = bench.secured()
    client.settimeout(5)
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: {HOST}:{bench.port}\r\n{fields}\r\n".encode())
    return all_of(client), flow


@pytest.fixture(scope="module")
def answering(ca: CertificateAuthority) -> Iterator[Callable[[bytes, str], tuple[bytes, ScriptedFlow]]]:
    """Ask a server that answers these bytes and closes."""
    answers: list[bytes] = []
    with (
        raw_tls_server(ca.issue(HOST), lambda sock: sock.sendall(answers[-1])) as server,
        engine(ca, server) as bench,
    ):

        def asked(answer: bytes, fields: str) -> tuple[bytes, ScriptedFlow]:
            answers.append(answer)
            return ask(bench, fields)

        yield asked


CLOSE = "Connection: close\r\n"
WEBSOCKET = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n"


@pytest.mark.parametrize(
    ("answer", "fields"),
    [
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nGET /no", CLOSE),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", CLOSE),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", CLOSE),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok", CLOSE),
        (b"HTTP/1.1 OK\r\n\r\n", CLOSE),
        (b"ICY 200 OK\r\n\r\n", CLOSE),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", CLOSE),
        (b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n", CLOSE),
        (b"\x16\x03\x01 no http", CLOSE),
        (b"", CLOSE),
    ],
)
def test_an_answer_that_is_none_becomes_an_error(
    answering: Callable[[bytes, str], tuple[bytes, ScriptedFlow]], answer: bytes, fields: str
) -> None:
    got, flow = answering(answer, fields)
    assert got.startswith(b"HTTP/1.1 502 ") or got in (b"", b" [reset]"), got
    assert wait_for(lambda: flow.end)


def test_an_upgrade_that_the_server_does_not_make_is_an_ordinary_answer(
    answering: Callable[[bytes, str], tuple[bytes, ScriptedFlow]],
) -> None:
    """What the client sends behind it is a request, not a message."""
    got, flow = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", WEBSOCKET + "\r\nGET /no HTTP/1.1\r\n"
                          f"Host: {HOST}:1\r\nConnection: close\r\n")  # fmt: skip
    assert got.startswith(b"HTTP/1.1 200 OK"), got
    assert b"HTTP/1.1 421 " in got
    assert [each.target for each in flow.asks] == ["/ok"]


def test_heads_before_the_answer_are_dropped(answering: Callable[[bytes, str], tuple[bytes, ScriptedFlow]]) -> None:
    first = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    got, _ = answering(first + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", CLOSE)
    assert got.startswith(b"HTTP/1.1 200 OK\r\n"), got
    assert got.endswith(b"\r\n\r\nok")


def test_trailers_of_an_answer_are_dropped(answering: Callable[[bytes, str], tuple[bytes, ScriptedFlow]]) -> None:
    got, _ = answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n", CLOSE)
    assert got.endswith(b"2\r\nok\r\n0\r\n\r\n"), got


def endless(line: bytes, start: bytes) -> Serve:
    def serve(sock: ssl.SSLSocket) -> None:
        sock.sendall(start)
        for _ in range(1000):
            sock.sendall(line * 1024)

    return serve


@pytest.mark.parametrize(
    ("line", "start"),
    [
        (b"y" * 66, b"HTTP/1.1 200 OK\r\nX: "),
        (b"y: " + b"z" * 61 + b"\r\n", b"HTTP/1.1 200 OK\r\n"),
        (b"y" * 66, b""),
        (b"\r\n" * 33, b""),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b""),
    ],
)
def test_an_answer_whose_head_has_no_end_is_bounded(ca: CertificateAuthority, line: bytes, start: bytes) -> None:
    with raw_tls_server(ca.issue(HOST), endless(line, start)) as server, engine(ca, server) as bench:
        bench.secured()
        before = resident(bench.worker())
        got, flow = ask(bench)
        assert got.startswith(b"HTTP/1.1 502 ") or got in (b"", b" [reset]"), got[:300]
        assert wait_for(lambda: flow.end)
        assert resident(bench.worker()) - before < 20_000_000


@pytest.mark.parametrize(
    ("begins", "ends", "name", "signed"),
    [
        (-10, -5, HOST, True),
        (5, 10, HOST, True),
        (-1, 5, "other.test", True),
        (-1, 5, "*.allowed.test", True),
        (-1, 5, HOST, False),
    ],
    ids=["expired", "not yet valid", "another name", "a wildcard below", "signed by itself"],
)
def test_a_certificate_that_is_not_right_is_refused(
    ca: CertificateAuthority, tmp_path: Path, begins: int, ends: int, name: str, signed: bool
) -> None:
    leaf = odd_leaf(ca, tmp_path, name, begins=begins, ends=ends, signed=signed)
    with raw_tls_server(leaf, lambda sock: sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")) as server:
        with engine(ca, server) as bench:
            got, flow = ask(bench)
            assert got.startswith(b"HTTP/1.1 502 "), got
            assert b"x-netsandbox-reason: certificate" in got
            assert wait_for(lambda: "certificate" in flow.refusals)
        assert server.heads == []


def test_a_certificate_that_is_right_is_accepted(ca: CertificateAuthority, tmp_path: Path) -> None:
    leaf = odd_leaf(ca, tmp_path, HOST, begins=-1, ends=5)
    with (
        raw_tls_server(leaf, lambda sock: sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as server,
        engine(ca, server) as bench,
    ):
        assert ask(bench)[0].startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_server_that_wants_a_certificate_of_the_client_names_the_way_out(
    ca: CertificateAuthority, version: ssl.TLSVersion
) -> None:
    context = ca.issue(HOST).context()
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(ca.cert)
    context.maximum_version = version
    with raw_tls_server(context, lambda sock: None) as server, engine(ca, server) as bench:
        for _ in range(5):  # its alert may come before the request, and ends that connection then
            got, flow = ask(bench)
            if got:
                break
        assert got.startswith(b"HTTP/1.1 502 "), got
        assert b"--inspect-except" in got
        assert wait_for(lambda: flow.end)
        assert server.heads == []
