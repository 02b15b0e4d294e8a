"""Secrets on their way through a real engine: HTTP/1, HTTP/2 and gRPC."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("the engine needs seccomp", allow_module_level=True)
pytest.importorskip("mitmproxy")

from netsandbox.policy.secret_rules import parse_secret
from netsandbox.runtime.session_secrets import SessionSecrets
from tests.rig.certificates import CertificateAuthority
from tests.rig.h2_peers import H2Canary, H2Client, Headers, h2_canary
from tests.rig.https_canary import HttpsCanary
from tests.rig.inspecting import HOST, EngineBench, wait_for

VALUE, KEY = "ghp_cAnArYvAlUe0123456789", "sk-ant-api03-kEyKeYkEy987654"


def secrets_for(port: int) -> SessionSecrets:
    token = [parse_secret(f"TOKEN@{HOST}:{port}", "here"), parse_secret(f"TOKEN@{HOST}:{port},query=key", "here")]
    return SessionSecrets([(VALUE, token), (KEY, [parse_secret("KEY@elsewhere.test", "here")])])


class Keeping:
    """An engine whose secret `TOKEN` is for its server, and `KEY` for another one."""

    def __init__(self, ca: CertificateAuthority, port: int) -> None:
        self.secrets = secrets_for(port)
        self.token, self.key = (self.secrets.placeholders[name] for name in ("TOKEN", "KEY"))
        self.bench = EngineBench(ca.cert, port, secrets=self.secrets)


@pytest.fixture
def keeping(ca: CertificateAuthority, server: HttpsCanary) -> Iterator[Keeping]:
    made = Keeping(ca, server.port)
    try:
        yield made
    finally:
        made.bench.close()


@pytest.fixture
def upstream(ca: CertificateAuthority) -> Iterator[H2Canary]:
    with h2_canary(ca.issue(HOST)) as made:
        yield made


@pytest.fixture
def two(ca: CertificateAuthority, upstream: H2Canary) -> Iterator[Keeping]:
    made = Keeping(ca, upstream.port)
    try:
        yield made
    finally:
        made.bench.close()


def exchange(keeping: Keeping, port: int, path: str, more: str = "", body: bytes = b"") -> tuple[bytes, list[str]]:
    """The whole answer, and what was refused."""
    client, flow = keeping.bench.secured()
    size = f"Content-Length: {len(body)}\r\n" if body else ""
    method = "POST" if body else "GET"
    head = f"{method} {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\n{more}{size}Connection: close\r\n\r\n"
    answer = b""
    try:
        client.sendall(head.encode() + body)
        while part := client.recv(65536):
            answer += part
    except OSError:
        answer += b"(reset)"
    assert wait_for(lambda: flow.end)
    assert VALUE.encode() not in answer
    assert KEY.encode() not in answer
    return answer, flow.refusals


def test_a_value_goes_out_and_does_not_come_back(keeping: Keeping, server: HttpsCanary) -> None:
    answer, refused = exchange(keeping, server.port, "/ok/1", f"Authorization: Bearer {keeping.token}\r\n")
    assert answer.startswith(b"HTTP/1.1 200")
    assert server.heads[0]["authorization"] == f"Bearer {VALUE}"
    assert refused == []


def test_the_supervisor_hears_the_name_and_the_placeholder(keeping: Keeping, server: HttpsCanary) -> None:
    client, flow = keeping.bench.secured()
    client.sendall(f"GET /ok?key={keeping.token} HTTP/1.1\r\nHost: {HOST}:{server.port}\r\n\r\n".encode())
    assert b"200" in client.recv(65536)
    assert flow.asks[0].secrets == "TOKEN"
    assert flow.asks[0].target == f"/ok?key={keeping.token}"
    assert server.requests == [f"GET /ok?key={VALUE}"]


def test_a_denied_request_gets_no_value(keeping: Keeping, server: HttpsCanary) -> None:
    answer, _ = exchange(keeping, server.port, "/no", f"Authorization: Bearer {keeping.token}\r\n")
    assert answer.startswith(b"HTTP/1.1 403")
    assert server.requests == []


def test_the_placeholder_of_another_host_goes_nowhere(keeping: Keeping, server: HttpsCanary) -> None:
    answer, refused = exchange(keeping, server.port, "/ok", f"Authorization: Bearer {keeping.key}\r\n")
    assert b"x-netsandbox-reason: secret-misplaced" in answer
    assert refused == ["secret-misplaced"]
    assert server.requests == []


@pytest.mark.parametrize("size", [0, 100_000])
def test_a_body_with_a_placeholder_resets_the_connection(keeping: Keeping, server: HttpsCanary, size: int) -> None:
    answer, refused = exchange(keeping, server.port, "/ok", body=b"x" * size + keeping.token.encode() + b"x" * size)
    assert refused == ["secret-misplaced"]
    assert not answer.startswith(b"HTTP/1.1 200")
    assert not any(keeping.token.encode() in body for body in server.bodies)


def test_the_worker_gets_no_value_of_another_host(keeping: Keeping) -> None:
    keeping.bench.secured()
    messages = keeping.secrets.messages(HOST, keeping.bench.port)
    assert [each["name"] for each in messages] == ["TOKEN"]
    assert keeping.secrets.messages("elsewhere.test", 443)[0]["value"] == KEY
    assert keeping.secrets.messages("elsewhere.test", 80) == []


def head(port: int, path: str, method: str = "GET", *more: tuple[str, str]) -> Headers:
    return [(":method", method), (":scheme", "https"), (":authority", f"{HOST}:{port}"), (":path", path), *more]


def test_http2_and_the_trailers_of_grpc(two: Keeping, upstream: H2Canary) -> None:
    sock, _ = two.bench.secured(("h2",))
    client = H2Client(sock)
    kind, token = ("content-type", "application/grpc"), ("authorization", f"Bearer {two.token}")
    sent = head(two.bench.port, "/ok.Service/Do", "POST", kind, token)
    headers, _ = client.answer(client.request(sent, body=b"\0\0\0\0\0"))
    assert upstream.requests[0]["authorization"] == f"Bearer {VALUE}"
    assert headers["grpc-message"] == f"Bearer {two.token}"


@pytest.mark.parametrize("place", ["header", "body", "trailers"])
def test_http2_with_a_placeholder_elsewhere(two: Keeping, upstream: H2Canary, place: str) -> None:
    sock, flow = two.bench.secured(("h2",))
    client = H2Client(sock)
    more = [("x-other", two.token)] if place == "header" else []
    stream = client.request(head(two.bench.port, "/ok", "POST", *more), body=b"x", end=False)
    if place == "body":
        client.conn.send_data(stream, two.token.encode(), end_stream=True)
    if place == "trailers":
        client.conn.send_headers(stream, [("x-other", two.token)], end_stream=True)
    sock.sendall(client.conn.data_to_send())
    assert wait_for(lambda: flow.refusals)
    assert flow.refusals == ["secret-misplaced"]
    assert not any(two.token in str(each) for each in upstream.requests)


def test_a_name_of_a_trailer_ends_its_connection_alone(two: Keeping, upstream: H2Canary) -> None:
    """Attack: a message that the supervisor cannot take would end the worker, and with it every connection."""
    near, other = two.bench.secured(("h2",))
    sock, flow = two.bench.secured(("h2",))
    client = H2Client(sock)
    stream = client.request(head(two.bench.port, "/ok", "POST"), body=b"x", end=False)
    client.conn.send_headers(stream, [(b"x-\x1b\xff", two.token.encode())], end_stream=True)
    sock.sendall(client.conn.data_to_send())
    assert wait_for(lambda: flow.end)
    assert not other.is_lost
    again = H2Client(near)
    assert again.answer(again.request(head(two.bench.port, "/ok")))[0][":status"] == "200"
