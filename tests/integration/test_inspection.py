"""Inspection end to end: real clients in a session, a real HTTPS server outside, which no denied request reaches."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.rig.authority import Authority
from tests.rig.certificates import CertificateAuthority
from tests.rig.command import CommandLine, Run
from tests.rig.https_canary import HttpsCanary, https_canary
from tests.rig.staged_engine import stage_engine
from tests.rig.world import ALLOWED, need

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the engine needs seccomp"),
    pytest.mark.backend("namespaces", "broker"),
]
pytest.importorskip("mitmproxy")


class Inspecting:
    """A session that reaches one HTTPS server, whose CA the user trusts."""

    def __init__(self, netsandbox: CommandLine, authority: Authority, ca: CertificateAuthority, server: HttpsCanary):
        self._netsandbox = netsandbox
        stage_engine(netsandbox.identity)
        self.ca = ca
        self.trust = {"SSL_CERT_FILE": str(ca.cert)}
        self.server = server
        self.authority = authority
        authority.answer(ALLOWED, "127.0.0.1")
        self.url = f"https://{ALLOWED}:{server.port}"

    def run(
        self, *command: str, rules: tuple[str, ...] = (), variables: dict[str, str] | None = None, **more: Any
    ) -> Run:
        names = ("--upstream-dns", self.authority.address, "--allow-address", f"127.0.0.1:{self.server.port}")
        env = {**self.trust, **(variables or {})}
        return self._netsandbox("run", *rules, *names, "--", *command, env=env, **more)


@pytest.fixture
def inspecting(netsandbox: CommandLine, authority: Authority, ca: CertificateAuthority) -> Iterator[Inspecting]:
    with https_canary(ca.issue(ALLOWED)) as server:
        yield Inspecting(netsandbox, authority, ca, server)


def test_only_allowed_requests_reach_the_server(inspecting: Inspecting) -> None:
    curl, url = need("curl", "curl"), inspecting.url
    script = f"{curl} -sS {url}/v1/a?q=secret; {curl} -sS -d data {url}/v1/a -D -; {curl} -sS {url}/v2/a"
    run = inspecting.run("sh", "-c", script, rules=("--allow-http", f"GET {url}/v1/**"))
    assert "answer /v1/a" in run.stdout, (run.stdout, run.stderr)
    assert "403 Forbidden" in run.stdout
    assert "x-netsandbox-reason: request-not-allowed" in run.stdout.lower()
    assert f"--allow-http 'POST {url}/v1/a'" in run.stdout
    assert inspecting.server.requests == ["GET /v1/a?q=secret"]
    records = [(each["verdict"], each["method"], each["path"], each["reason"]) for each in run.events("http")]
    assert records == [
        ("allow", "GET", "/v1/a", "rule"),
        ("deny", "POST", "/v1/a", "request-not-allowed"),
        ("deny", "GET", "/v2/a", "request-not-allowed"),
    ]
    (end,) = run.events("http.end")
    assert (end["status"], end["bytes_down"]) == (200, 22)
    assert {each["connection"] for each in run.events("http")} == {
        each["connection"] for each in run.events("egress", verdict="allow")
    }


RAW = """
import socket, ssl, sys, os
host, port = sys.argv[1], int(sys.argv[2])
def connect():
    sock = socket.create_connection((host, port), 10)
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context.wrap_socket(sock, server_hostname=host)
for line in sys.stdin.read().split("=====\\n"):
    if not line: continue
    data = line.encode("latin-1").decode("unicode_escape").encode("latin-1")
    tls = connect()
    answer = b""
    try:
        tls.sendall(data)
        tls.settimeout(3)
        while part := tls.recv(65536):
            answer += part
    except (OSError, ssl.SSLError) as error:
        answer += b" [" + type(error).__name__.encode() + b"]"
    print(answer.split(b"\\r\\n")[0].decode("latin-1"))
"""


def raw(inspecting: Inspecting, rules: tuple[str, ...], *requests: str) -> tuple[list[str], Run]:
    """Send each request on a connection of its own; the first line of each answer."""
    text = "=====\n".join(request.replace("\r\n", "\\r\\n") for request in requests)
    run = inspecting.run(
        "python3", "-c", RAW, ALLOWED, str(inspecting.server.port), rules=rules, input=text, timeout=120
    )
    return run.stdout.splitlines(), run


def test_bad_requests_go_nowhere(inspecting: Inspecting) -> None:
    """Smuggling pairs, other hosts, ambiguous paths, forbidden methods, endless heads (attacks 25, 42)."""
    port = inspecting.server.port
    host = f"Host: {ALLOWED}:{port}\r\n"
    rules = ("--allow-http", f"GET,POST {inspecting.url}/v1/**")
    bad = (
        "GET /v1/a HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n",
        f"GET /v1/a HTTP/1.1\r\nHost: {ALLOWED}\r\nConnection: close\r\n\r\n",
        f"GET /v1/a HTTP/1.1\r\n{host}Host: other.test\r\nConnection: close\r\n\r\n",
        f"GET https://other.test/v1/a HTTP/1.1\r\n{host}Connection: close\r\n\r\n",
        "GET /v1/a HTTP/1.1\r\nConnection: close\r\n\r\n",
        f"POST /v1/a HTTP/1.1\r\n{host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x",
        f"POST /v1/a HTTP/1.1\r\n{host}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        f"POST /v1/a HTTP/1.1\r\n{host}Content-Length: -1\r\n\r\n",
        f"POST /v1/a HTTP/1.1\r\n{host}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        f"GET /v1/../v2/a HTTP/1.1\r\n{host}Connection: close\r\n\r\n",
        f"GET /v1/%2e%2e/v2/a HTTP/1.1\r\n{host}Connection: close\r\n\r\n",
        f"GET /v1//a HTTP/1.1\r\n{host}Connection: close\r\n\r\n",
        f"GET /v1/a%2fb HTTP/1.1\r\n{host}Connection: close\r\n\r\n",
        f"TRACE /v1/a HTTP/1.1\r\n{host}Connection: close\r\n\r\n",
        f"CONNECT {ALLOWED}:{port} HTTP/1.1\r\n{host}\r\n",
        f"POST /v1/a HTTP/1.1\r\n{host}X-HTTP-Method-Override: PUT\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        f"GET /v1/a HTTP/1.1\r\n{host}X_Original_URL: /v2/a\r\nConnection: close\r\n\r\n",
        f"get /v1/a HTTP/1.1\r\n{host}Connection: close\r\n\r\n",
        f"GET /v1/a HTTP/1.2\r\n{host}Connection: close\r\n\r\n",
        f"POST /v1/a HTTP/1.1\r\n{host}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        f"GET /v1/{'x' * 20000} HTTP/1.1\r\n{host}Connection: close\r\n\r\n",
        f"GET /v1/a HTTP/1.1\r\n{host}X: {'y' * 700000}",
    )
    answers, run = raw(inspecting, rules, *bad)
    assert inspecting.server.requests == [], (answers, run.stderr)
    assert [answer for answer in answers if answer.startswith(("HTTP/1.1 2", "HTTP/1.0 2"))] == []
    assert len(answers) == len(bad), run.stderr
    assert not [each for each in run.events("http") if each["verdict"] == "allow"]


def test_good_requests_of_every_kind_pass(inspecting: Inspecting) -> None:
    curl, url = need("curl", "curl"), inspecting.url
    script = f"""
    {curl} -sS -I {url}/head
    {curl} -sS {url}/a {url}/b {url}/c
    {curl} -sS {url}/close/1 {url}/close/2
    head -c 3000000 /dev/zero | {curl} -sS -T - {url}/upload
    head -c 300000 /dev/zero | {curl} -sS -H 'Expect: 100-continue' -H 'Transfer-Encoding: chunked' \\
        --data-binary @- {url}/chunked
    {curl} -sS {url}/big/5000000 | wc -c
    {curl} -sSN {url}/events
    {curl} -sS --http2 {url}/two
    """
    run = inspecting.run(
        "sh", "-c", script, rules=("--allow-domain", f"{ALLOWED}:{inspecting.server.port}", "--inspect", f"{ALLOWED}:*")
    )
    for wanted in (
        "200",
        "answer /b",
        "answer /close/2",
        "answer /upload",
        "answer /chunked",
        "5000000",
        "data: 2",
        "answer /two",
    ):
        assert wanted in run.stdout, (wanted, run.stdout, run.stderr)
    assert sorted(map(len, inspecting.server.bodies))[-2:] == [300000, 3000000]
    assert len(run.events("http.end")) == len(inspecting.server.requests) == 11


WEBSOCKET = """
import base64, os, socket, ssl, sys
host, port = sys.argv[1], int(sys.argv[2])
tls = ssl.create_default_context().wrap_socket(socket.create_connection((host, port), 10), server_hostname=host)
key = base64.b64encode(os.urandom(16)).decode()
tls.sendall((f"GET {sys.argv[3]} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\nUpgrade: websocket\\r\\n"
             f"Connection: Upgrade\\r\\nSec-WebSocket-Key: {key}\\r\\nSec-WebSocket-Version: 13\\r\\n\\r\\n").encode())
head = tls.recv(4096)
print(head.split(b"\\r\\n")[0].decode())
if b" 101 " in head:
    tls.sendall(bytes((0x81, 0x85, 0, 0, 0, 0)) + b"hello")
    print(tls.recv(4096)[2:].decode())
"""


def test_a_websocket_passes_or_is_refused_as_a_request(inspecting: Inspecting) -> None:
    for path, wanted in (("/ws", "HTTP/1.1 101 Switching Protocols\nhello\n"), ("/no", "HTTP/1.1 403 Forbidden\n")):
        command = ("python3", "-c", WEBSOCKET, ALLOWED, str(inspecting.server.port), path)
        run = inspecting.run(*command, rules=("--allow-http", f"GET {inspecting.url}/ws"))
        assert run.stdout == wanted, run.stderr
    assert inspecting.server.requests == ["GET /ws"]


@pytest.mark.parametrize("names", [("other.test",), ()])
def test_a_server_with_a_wrong_certificate_gets_no_request(
    netsandbox: CommandLine, authority: Authority, ca: CertificateAuthority, names: tuple[str, ...]
) -> None:
    with https_canary(ca.issue(*(names or (ALLOWED,)))) as server:
        inspecting = Inspecting(netsandbox, authority, ca, server)
        if not names:  # the user does not trust its CA
            inspecting.trust = {}
        run = inspecting.run(
            "curl", "-sS", "-D", "-", f"{inspecting.url}/a", rules=("--allow-http", f"{inspecting.url}/**")
        )
        assert "HTTP/1.1 502" in run.stdout, (run.stdout, run.stderr)
        assert "x-netsandbox-reason: certificate" in run.stdout
        assert server.requests == []
        assert run.events("egress", reason="certificate")


@pytest.mark.open_files
def test_a_client_that_trusts_nobody_is_named(inspecting: Inspecting) -> None:
    command = ("curl", "-sS", "--cacert", str(inspecting.ca.cert), f"{inspecting.url}/a")
    run = inspecting.run(*command, rules=("--allow-http", f"{inspecting.url}/**"))
    assert run.returncode == 60
    assert run.events("egress", reason="client-tls")
    assert inspecting.server.requests == []


@pytest.mark.open_files
def test_an_exception_is_spliced_with_its_own_certificate(inspecting: Inspecting) -> None:
    command = ("curl", "-sS", "--cacert", str(inspecting.ca.cert), f"{inspecting.url}/a")
    place = f"{ALLOWED}:{inspecting.server.port}"
    rules = ("--inspect", "**.test:*", "--inspect-except", place, "--allow-domain", place)
    run = inspecting.run(*command, rules=rules)
    assert "answer /a" in run.stdout, run.stderr
    assert run.events("http") == []


def test_what_is_no_http_is_refused(inspecting: Inspecting) -> None:
    code = (
        "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])));"
        "s.sendall(b'SSH-2.0-x\\r\\n'); print(s.recv(10))"
    )
    command = ("python3", "-c", code, ALLOWED, str(inspecting.server.port))
    run = inspecting.run(*command, rules=("--allow-http", f"{inspecting.url}/**"))
    assert "ConnectionResetError" in run.stderr
    assert run.events("egress", reason="not-http")


def test_plain_http_follows_rules_too(netsandbox: CommandLine, authority: Authority, ca: CertificateAuthority) -> None:
    """By the proxy and without it; these requests need no engine."""
    with https_canary(None) as server:
        inspecting = Inspecting(netsandbox, authority, ca, server)
        url = f"http://{ALLOWED}:{server.port}"
        direct = "curl -sS --noproxy '*'"
        script = f"curl -sS {url}/v1/a {url}/v2/a; {direct} {url}/v1/b {url}/v1/c; {direct} -d x {url}/v1/b"
        run = inspecting.run("sh", "-c", script, rules=("--allow-http", f"GET {url}/v1/**"))
        assert server.requests == ["GET /v1/a", "GET /v1/b", "GET /v1/c"], (run.stdout, run.stderr)
        assert run.stdout.count("request-not-allowed") == 2
        assert len(run.events("http", verdict="deny")) == 2
