"""Programs in a session without namespaces: what is allowed works unchanged, and the forbidden server hears nothing.

The verdict is the canary's, as in test_programs.py; each denial has its allowed twin.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_git_and_ssh import repository, sshd, test_git_over_http, test_ssh_and_git_over_ssh  # noqa: F401
from tests.integration.test_lifecycle import FIRST_PACKET, names, wire
from tests.integration.test_profiles import (  # noqa: F401
    shop,
    test_npm_installs_from_the_users_registry_and_nothing_else_is_reached,
    test_pip_installs_from_the_users_index,
)
from tests.integration.test_programs import (  # noqa: F401
    test_a_static_go_program,
    test_curl,
    test_python,
)
from tests.rig.world import ALLOWED, DENIED, World, need

pytestmark = [pytest.mark.broker_as_root, pytest.mark.backend("broker")]

# Each way to a connection, tried at the allowed server and at the forbidden one; prints how many answered.
WAYS = """
import asyncio, json, os, socket, sys, threading
good, bad = (sys.argv[1], int(sys.argv[2])), (sys.argv[3], int(sys.argv[4]))

def talk(sock):
    with sock:
        sock.sendall(b"ping\\n")
        return sock.recv(1) == b"p"

def plain(place):
    return talk(socket.create_connection(place, 10))

def mapped(place):
    address = socket.getaddrinfo(*place, socket.AF_INET, socket.SOCK_STREAM)[0][4]
    sock = socket.socket(socket.AF_INET6)
    sock.settimeout(10)
    sock.connect(("::ffff:" + address[0], address[1]))
    assert sock.getpeername()[:2] == ("::ffff:" + address[0], address[1])
    return talk(sock)

def duplicated(place):
    first = socket.socket()
    second = first.dup()
    first.close()
    address = socket.getaddrinfo(*place, socket.AF_INET)[0][4]
    second.settimeout(10)
    second.connect(address)
    return talk(second)

def forked(place):
    sock = socket.socket()
    address = socket.getaddrinfo(*place, socket.AF_INET)[0][4]
    if os.fork() == 0:
        try:
            sock.connect(address)
            os._exit(0)
        except OSError:
            os._exit(1)
    if os.wait()[1]:
        raise ConnectionError
    return talk(sock)

def passed(place):
    here, there = socket.socketpair()
    address = socket.getaddrinfo(*place, socket.AF_INET)[0][4]
    if os.fork() == 0:
        with socket.socket(fileno=socket.recv_fds(there, 1, 1)[1][0]) as sock:
            sock.settimeout(10)
            try:
                sock.connect(address)
                os._exit(0 if talk(sock) else 1)
            except OSError:
                os._exit(1)
    with socket.socket() as sock:
        socket.send_fds(here, [b"x"], [sock.fileno()])
    status = os.wait()[1]
    here.close(), there.close()
    return status == 0

def loop(place):
    async def main():
        reader, writer = await asyncio.wait_for(asyncio.open_connection(*place), 10)
        writer.write(b"ping\\n")
        data = await reader.read(1)
        writer.close()
        return data == b"p"
    return asyncio.run(main())

def crowd(place):
    address = socket.getaddrinfo(*place, socket.AF_INET)[0][4]
    done = []
    def many():
        for _ in range(20):
            try:
                done.append(talk(socket.create_connection(address, 20)))
            except OSError:
                done.append(False)
    threads = [threading.Thread(target=many) for _ in range(50)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return sum(done)

def tried(way, place):
    try:
        return way(place)
    except OSError:
        return False

ways = [plain, mapped, duplicated, forked, passed, loop]
print(json.dumps([[tried(way, place) for way in ways] for place in (good, bad)] + [tried(crowd, good)]))
"""


def test_a_connection_is_made_however_its_socket_came_about(world: World) -> None:
    """dup, fork, SCM_RIGHTS, a mapped address, asyncio, fifty threads with twenty connections each."""
    server, forbidden = world.canary.tcp(echo=True), world.canary.tcp(echo=True)
    options = (*world.options(server.port), "--allow-address", forbidden.address)
    places = (ALLOWED, str(server.port), DENIED, str(forbidden.port))
    run = world.netsandbox("run", *options, "--", world.netsandbox.python, "-c", WAYS, *places, timeout=120)
    good, bad, crowd = json.loads(run.stdout)
    assert good == [True] * 6, (good, run.stderr)
    assert bad == [False] * 6
    assert crowd == 1000
    assert (server.accepts, forbidden.accepts) == (1006, 0)


IPV6 = """
import json, socket, sys
def tried(place):
    try:
        with socket.create_connection(place, 10) as client:
            client.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
            return client.recv(100).decode()
    except OSError:
        return "none"
port = int(sys.argv[1])
with socket.create_server(("::1", 3000), family=socket.AF_INET6) as server:
    with socket.create_connection(("::1", 3000)) as client:
        peer = server.accept()[0]
        names = [client.getpeername()[:2], server.getsockname()[:2]]
        peer.close()
print(json.dumps([names, tried(("::1", port)), tried(("2001:db8::1", port)), tried(("::ffff:127.0.0.1", port))]))
"""


def test_ipv6(world: World) -> None:
    """The session's own ::1 works; the host's, and any other address of IPv6, is out of reach."""
    server = world.canary.http("::1", body=b"forbidden")
    words = (world.netsandbox.python, "-c", IPV6, str(server.port))
    run = world.netsandbox("run", "--allow-address", f"[::1]:{server.port}", "--", *words)
    own, *others = json.loads(run.stdout)
    assert own == [["::1", 3000], ["::1", 3000]]
    assert not [text for text in others if "forbidden" in text]
    assert server.accepts == 0
    denied = {record.get("address") for record in run.events("egress", verdict="deny")}
    assert "2001:db8::1" in denied


NODE = """
const dgram = require("dgram"), dns = require("dns"), http = require("http"), net = require("net");
const [host, port, bad, badPort] = process.argv.slice(1);
const get = (host, port) => new Promise(done => http.get({host, port, agent: false}, answer => {
    let body = ""; answer.on("data", part => body += part); answer.on("end", () => done(body));
}).on("error", error => done(error.code)));
const resolve = name => new Promise(
    done => dns.resolve4(name, (error, found) => done(error ? error.code : found.length)));
const datagrams = () => new Promise(done => {
    const server = dgram.createSocket("udp4");
    server.on("error", error => done(error.code)).bind(5000, "127.0.0.1", () => done("bound"));
});
const listen = () => new Promise(done => {
    const server = http.createServer((q, answer) => answer.end("own " + q.socket.localPort)).listen(3000, async () => {
        const body = await get("localhost", 3000); server.close(); done([server.address()?.port ?? 3000, body]);
    });
});
(async () => console.log(JSON.stringify([await get(host, port), await get(bad, badPort), await resolve(host),
    await resolve(bad), await datagrams(), await listen()])))();
"""


def test_node(world: World) -> None:
    """http, dns by c-ares, dgram, which can be no server, and a server that it reaches itself."""
    server = world.canary.http(body=b"reached")
    words = (ALLOWED, str(server.port), DENIED, str(world.forbidden.port))
    run = world.netsandbox("run", *world.options(server.port), "--", need("node", "nodejs"), "-e", NODE, *words)
    page, denied, found, unknown, datagram, own = json.loads(run.stdout)
    assert (page, found, datagram, own) == ("reached", 1, "EACCES", [3000, "own 3000"]), run.stderr
    assert "forbidden" not in denied
    assert isinstance(unknown, str)
    assert world.forbidden.accepts == 0


@pytest.fixture(scope="session")
def musl(workshop: Path) -> Path:
    """FIRST_PACKET, linked with musl by zig."""
    pytest.importorskip("ziglang", reason="zig is missing (package ziglang of the test extra)")
    source, program = workshop / "musl.c", workshop / "musl"
    source.write_text(FIRST_PACKET)
    target = f"{os.uname().machine}-linux-musl"
    command = [
        sys.executable,
        "-m",
        "ziglang",
        "cc",
        "-target",
        target,
        "-static",
        "-O1",
        str(source),
        "-o",
        str(program),
    ]
    subprocess.run(command, check=True, capture_output=True)
    program.chmod(0o755)
    return program


@pytest.mark.ordinary_user(only=True)
def test_a_static_program_with_another_c_library(netsandbox: Any, canary: Any, authority: Any, musl: Path) -> None:
    """It asks for the name itself, over UDP, and connects."""
    server, forbidden = canary.tcp(echo=True), canary.tcp(echo=True)
    options = (*names(authority, f"{ALLOWED}:{server.port}"), "--allow-read", str(musl))
    assert netsandbox("run", *options, "--", musl, wire(ALLOWED), str(server.port)).returncode == 0
    assert netsandbox("run", *options, "--", musl, wire(DENIED), str(forbidden.port)).returncode == 12
    assert netsandbox("run", *options, "--", musl, "203.0.113.9", str(forbidden.port)).returncode in (13, 14, 15)
    assert (server.accepts, forbidden.accepts) == (1, 0)


def test_bash_connects_by_its_device_files(world: World) -> None:
    server = world.canary.tcp(greeting=b"reached\n")
    script = 'for place in "$1/$2" "$3/$4"; do (read -r line <"/dev/tcp/$place" && echo "$line") || echo none; done'
    words = (ALLOWED, str(server.port), DENIED, str(world.forbidden.port))
    run = world.netsandbox("run", *world.options(server.port), "--", need("bash", "bash"), "-c", script, "bash", *words)
    assert run.stdout == "reached\nnone\n", run.stderr
    assert world.forbidden.accepts == 0


def test_a_session_says_which_backend_it_has(netsandbox: Any) -> None:
    run = netsandbox("run", "--", "true")
    assert [record["backend"] for record in run.events("session.start")] == ["broker"]
    assert run.stderr == ""
