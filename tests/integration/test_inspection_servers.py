"""Inspection between real clients and real servers: nginx, Hypercorn, gRPC and websockets. Each denied request has its
allowed twin, and the server tells what reached it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_inspection import Inspecting
from tests.rig.account import Identity
from tests.rig.authority import Authority
from tests.rig.certificates import CertificateAuthority, Leaf
from tests.rig.command import CommandLine, Run
from tests.rig.ports import free_port
from tests.rig.tools import Tools
from tests.rig.waiting import wait_for
from tests.rig.world import ALLOWED, need

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the engine needs seccomp"),
    pytest.mark.usefixtures("user_namespaces"),
]
pytest.importorskip("mitmproxy")


class RealServer:
    """A server process at `port`; `lines` is what it wrote about its requests."""

    def __init__(self, port: int, log: Path) -> None:
        self.port = port
        self._log = log

    @property
    def lines(self) -> list[str]:
        return self._log.read_text().splitlines()


Start = Callable[..., RealServer]


@pytest.fixture
def started(ca: CertificateAuthority, tmp_path: Path) -> Iterator[Start]:
    """Starts a server by its command; PORT, CERT, KEY and FOLDER in its words are replaced."""
    processes: list[subprocess.Popen[bytes]] = []
    leaf: Leaf = ca.issue(ALLOWED)

    def start(*command: str, env: dict[str, str] | None = None, **files: str) -> RealServer:
        port, log = free_port(), tmp_path / "requests"
        values = {"PORT": str(port), "CERT": str(leaf.cert), "KEY": str(leaf.key), "FOLDER": str(tmp_path)}

        def placed(text: str) -> str:
            for name, value in values.items():
                text = text.replace(name, value)
            return text

        for name, text in files.items():
            (tmp_path / name).write_text(placed(text))
        log.touch()
        words = [*map(placed, command)]
        processes.append(subprocess.Popen(words, cwd=tmp_path, env=env, stderr=subprocess.DEVNULL))
        wait_for(lambda: _listens(port), 60)
        return RealServer(port, log)

    yield start
    for process in processes:
        process.terminate()
        process.wait(10)


def _listens(port: int) -> bool:
    with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@pytest.fixture
def session(netsandbox: CommandLine, authority: Authority, ca: CertificateAuthority) -> Callable[..., Run]:
    """Runs a Python program, or a command, that may GET, and POST below /v1 and /ok."""

    def run(server: Any, *command: str, **more: Any) -> Run:
        inspecting = Inspecting(netsandbox, authority, ca, server)
        url = inspecting.url
        rules = ("--allow-http", f"GET,POST {url}/v1/**", "--allow-http", f"POST {url}/ok.Service/*")
        words = [word.replace("URL", url).replace("PLACE", url.removeprefix("https://")) for word in command]
        done = inspecting.run(*words, rules=rules, **more)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done

    return run


NGINX = """
daemon off;
worker_processes 1;
pid FOLDER/nginx.pid;
USER
error_log /dev/null;
events { worker_connections 64; }
http {
    log_format short "$request";
    access_log FOLDER/requests short;
    client_body_temp_path FOLDER/body;
    proxy_temp_path FOLDER/proxy;
    fastcgi_temp_path FOLDER/fastcgi;
    uwsgi_temp_path FOLDER/uwsgi;
    scgi_temp_path FOLDER/scgi;
    client_max_body_size 100m;
    server {
        listen 127.0.0.1:PORT ssl http2;
        ssl_certificate CERT;
        ssl_certificate_key KEY;
        location /v1/big { alias FOLDER/big; }
        location /v1/put { root FOLDER; client_body_in_file_only clean; return 201 "put"; }
        location / { return 200 "page $server_protocol $request_length"; }
    }
}
"""
NODE_HTTP2 = """
const client = require("http2").connect(process.argv[1]);
const get = path => new Promise((done, fail) => {
    const request = client.request({":path": path});
    let status, text = "";
    request.on("response", head => status = head[":status"]);
    request.on("data", data => text += data);
    request.on("end", () => done(console.log(status, text.slice(0, 60))));
    request.on("error", fail);
});
(async () => {
    await Promise.all(["/v1/a", "/v1/b", "/v2/a"].map(get));
    client.close();
})();
"""


def test_nginx_over_both_versions_of_http(started: Start, session: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * 20_000_000)
    config = NGINX.replace("USER", "user root root;" if os.geteuid() == 0 else "")
    server = started(need("nginx", "nginx-light"), "-c", "FOLDER/nginx.conf", **{"nginx.conf": config})
    script = """
    curl -sS URL/v1/a; echo
    curl -sS URL/v2/a; echo
    curl -sS URL/v1/big | wc -c
    head -c 5000000 /dev/zero | curl -sS --data-binary @- URL/v1/put; echo
    curl -sS -X DELETE URL/v1/a; echo
    """
    run = session(server, "sh", "-c", script)
    assert "page HTTP/1.1" in run.stdout
    assert "\n20000000\n" in run.stdout
    assert run.stdout.count("request-not-allowed") == 2
    two = session(server, need("node", "nodejs"), "-e", NODE_HTTP2, "URL")
    assert two.stdout.count("200 page HTTP/2.0") == 2, (two.stdout, two.stderr)
    assert two.stdout.count("403 netsandbox: ") == 1
    assert sorted(server.lines) == sorted([
        "GET /v1/a HTTP/1.1", "GET /v1/big HTTP/1.1", "POST /v1/put HTTP/1.1",
        "GET /v1/a HTTP/2.0", "GET /v1/b HTTP/2.0",
    ])  # fmt: skip
    assert len(two.events("http", verdict="deny")) == 1


GRPC_SERVER = """
import grpc, sys
from concurrent import futures

def note(context, name):
    with open("FOLDER/requests", "a") as log:
        log.write(name + "\\n")

def unary(request, context):
    note(context, "unary")
    context.set_trailing_metadata((("x-end", "trailer"),))
    return b"got " + request

def echo(requests, context):
    note(context, "echo")
    for request in requests:
        yield b"echo " + request

def fail(request, context):
    note(context, "fail")
    context.abort(grpc.StatusCode.NOT_FOUND, "there is none: 100 %")

methods = {
    "Unary": grpc.unary_unary_rpc_method_handler(unary),
    "Echo": grpc.stream_stream_rpc_method_handler(echo),
    "Fail": grpc.unary_unary_rpc_method_handler(fail),
}
server = grpc.server(futures.ThreadPoolExecutor(4))
for service in ("ok.Service", "no.Service"):
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
pair = open("KEY", "rb").read(), open("CERT", "rb").read()
server.add_secure_port("127.0.0.1:PORT", grpc.ssl_server_credentials([pair]))
server.start()
server.wait_for_termination()
"""
GRPC_CLIENT = """
import sys
sys.path[:0] = [sys.argv[1]]
import grpc, queue
channel = grpc.secure_channel(sys.argv[2], grpc.ssl_channel_credentials())

def attempt(call):
    try:
        print(call())
    except grpc.RpcError as error:
        print(error.code().name, error.details())

def unary(service, name):
    return channel.unary_unary(f"/{service}/{name}")(b"x" * 5, timeout=20)

attempt(lambda: unary("ok.Service", "Unary"))
attempt(lambda: unary("ok.Service", "Fail"))
attempt(lambda: unary("no.Service", "Unary"))
answer, call = channel.unary_unary("/ok.Service/Unary").with_call(b"y" * 3_000_000, timeout=20)
print(len(answer), call.trailing_metadata())
waiting = queue.Queue()
answers = channel.stream_stream("/ok.Service/Echo")(iter(waiting.get, None), timeout=20)
for number in range(3):  # each answer comes before the next request
    waiting.put(b"%d" % number)
    print(next(answers))
waiting.put(None)
print(list(answers))
attempt(lambda: next(channel.stream_stream("/no.Service/Echo")(iter([b"x"]), timeout=20)))
"""


@pytest.mark.open_files
def test_grpc_unary_streams_errors_and_refusals(
    started: Start, session: Callable[..., Run], tools: Tools, identity: Identity
) -> None:
    folder = tools.of_pip("grpcio", identity)
    server = started(identity.python, "FOLDER/server.py", env={"PYTHONPATH": folder}, **{"server.py": GRPC_SERVER})
    run = session(server, identity.python, "-c", GRPC_CLIENT, folder, "PLACE")
    lines = run.stdout.splitlines()
    assert lines[0] == "b'got xxxxx'", (lines, run.stderr)
    assert lines[1] == "NOT_FOUND there is none: 100 %"
    assert lines[2].startswith("PERMISSION_DENIED netsandbox: "), lines[2]
    assert "--allow-http 'POST " in lines[2]
    assert lines[3].startswith("3000004 "), lines[3]
    assert "x-end" in lines[3]
    assert lines[4:8] == ["b'echo 0'", "b'echo 1'", "b'echo 2'", "[]"]
    assert lines[8].startswith("PERMISSION_DENIED netsandbox: ")
    assert server.lines == ["unary", "fail", "unary", "echo"]
    assert [each["path"] for each in run.events("http", verdict="deny")] == ["/no.Service/Unary", "/no.Service/Echo"]


WEBSOCKET_SERVER = """
import asyncio, ssl
from websockets.asyncio.server import serve

async def echo(connection):
    with open("FOLDER/requests", "a") as log:
        log.write(connection.request.path + "\\n")
    async for message in connection:
        await connection.send(message)

async def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("CERT", "KEY")
    async with serve(echo, "127.0.0.1", PORT, ssl=context, max_size=None):
        await asyncio.get_running_loop().create_future()

asyncio.run(main())
"""
WEBSOCKET_CLIENT = """
import sys
sys.path[:0] = [sys.argv[1]]
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
with connect(f"wss://{sys.argv[2]}/v1/chat", max_size=None) as connection:
    for message in ("hello", b"\\0" * 2_000_000, "x" * 70_000):
        connection.send(message)
        print(connection.recv() == message)
    connection.ping().wait(10)
try:
    connect(f"wss://{sys.argv[2]}/v2/chat")
except InvalidStatus as error:
    print(error.response.status_code, error.response.headers["x-netsandbox-reason"])
"""


@pytest.mark.open_files
def test_websockets_pass_and_are_refused(
    started: Start, session: Callable[..., Run], tools: Tools, identity: Identity
) -> None:
    folder = tools.of_pip("websockets", identity)
    server = started(identity.python, "FOLDER/server.py", env={"PYTHONPATH": folder}, **{"server.py": WEBSOCKET_SERVER})
    run = session(server, identity.python, "-c", WEBSOCKET_CLIENT, folder, "PLACE")
    assert run.stdout.splitlines() == ["True"] * 3 + ["403 request-not-allowed"], run.stderr
    assert server.lines == ["/v1/chat"]


HYPERCORN_APP = """
import asyncio
acknowledged = asyncio.Event()

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    with open("FOLDER/requests", "a") as log:
        log.write(f"{scope['method']} {scope['path']} {scope['http_version']}\\n")
    is_stream = scope["path"] == "/v1/events"
    kind = b"text/event-stream" if is_stream else b"text/plain"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
    if is_stream:
        await send({"type": "http.response.body", "body": b"data: first\\n\\n", "more_body": True})
        await acknowledged.wait()
    elif scope["path"] == "/v1/ack":
        acknowledged.set()
    await send({"type": "http.response.body", "body": b"data: last\\n\\n"})
"""
EVENTS_CLIENT = """
const client = require("http2").connect(process.argv[1]);
const events = client.request({":path": "/v1/events"});
events.setEncoding("utf8");
events.on("data", text => {
    console.log(text.trim());
    if (text.includes("first")) client.request({":path": "/v1/ack"}).resume();  // the rest comes only after this
});
events.on("end", () => client.request({":path": "/v2/x"}).on("response", head => {
    console.log(head[":status"], head["x-netsandbox-reason"]);
    client.close();
}).resume());
"""


def test_events_of_an_http2_server_are_not_held_back(
    started: Start, session: Callable[..., Run], tools: Tools, identity: Identity
) -> None:
    folder = tools.of_pip("hypercorn", identity)
    options = ("--certfile", "CERT", "--keyfile", "KEY", "--bind", "127.0.0.1:PORT", "application:app")
    command = (identity.python, "-m", "hypercorn", *options)
    server = started(*command, env={"PYTHONPATH": folder}, **{"application.py": HYPERCORN_APP})
    run = session(server, need("node", "nodejs"), "-e", EVENTS_CLIENT, "URL")
    assert run.stdout.splitlines() == ["data: first", "data: last", "403 request-not-allowed"], run.stderr
    assert server.lines == ["GET /v1/events 2", "GET /v1/ack 2"]
