"""What listens in a session is found on the host: soon, where `netsandbox ports` says, and on loopback only.

Many sessions can have the same port; the host's own servers and other sessions are never in the way.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from tests.rig import clients, ports
from tests.rig.command import CommandLine
from tests.rig.servers_inside import CLOSING, WAYS, Inside, Puppets, faces, split_url, wait_for
from tests.rig.world import need

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

SESSIONS = 10
NODE = """
const http = require("http");
http.createServer((request, response) => response.end(`page ${process.argv[2]}`)).listen(3000);
"""


def test_ten_sessions_have_the_same_port_and_each_is_opened_by_its_url(netsandbox: CommandLine) -> None:
    (netsandbox.home().work / "server.js").write_text(NODE)
    node, names = need("node", "nodejs"), [f"shop-{number}" for number in range(SESSIONS)]
    for name in names:
        netsandbox.spawn("run", "--name", name, "--", node, "server.js", name, stdout=subprocess.DEVNULL)

    def listed() -> list[dict[str, Any]] | None:
        entries: list[dict[str, Any]] = json.loads(netsandbox("ports", "--json").stdout)
        return entries if len(entries) == SESSIONS else None

    entries = {entry["name"]: entry for entry in wait_for(listed, "ten servers", 60)}
    assert sorted(entries) == names
    assert {entry["port"] for entry in entries.values()} == {3000}
    assert len({face for entry in entries.values() for face in faces(entry)}) == SESSIONS
    for name, entry in entries.items():
        for address, port in faces(entry):
            assert clients.ask_http(address, port)["page"] == f"page {name}"
        host, port = split_url(entry["url"])
        assert host == f"{name}.localhost:{port}"
        assert clients.ask_http("127.0.0.1", port, host)["page"] == f"page {name}"
        assert clients.ask_http("::1", port, host)["page"] == f"page {name}"
    curl = [need("curl", "curl"), "-sSf", "--noproxy", "*", "--max-time", "60"]
    urls = [entry["url"] for entry in entries.values()]
    done = subprocess.run([*curl, *urls], capture_output=True, text=True, check=True)  # resolves *.localhost itself
    assert done.stdout == "".join(f"page {name}" for name in entries)


def test_a_listener_is_noticed_without_asking(puppet: Puppets) -> None:
    """Nobody calls `netsandbox ports` here. How long it took is printed, not judged: this machine may be busy."""
    device = ports.free_device()
    session = puppet("--listening-loopback", device)
    took = []
    with ThreadPoolExecutor(1) as pool:
        for port in range(4040, 4060):
            waiting = pool.submit(wait_for, partial(reach, device, port), f"port {port} on the host", pause=0.0002)
            listener = session.tell("listen", "127.0.0.1", port)
            took.append((waiting.result() - listener["at"]) / 1e6)
            assert clients.ask_http(device, port)["page"] == session.page
            session.tell("close", port)
    print(
        f"from listen() inside to connect() outside: median {statistics.median(took):.2f} ms, most {max(took):.2f} ms"
    )


def reach(address: str, port: int) -> int | None:
    """The moment at which a connection stood."""
    try:
        with socket.create_connection((address, port), 5):
            return time.monotonic_ns()
    except OSError:
        return None


@pytest.mark.attack(189)
def test_only_loopback_is_bound_whatever_the_server_binds(shared: Inside) -> None:
    opened = [shared.tell("listen", address, 0)["port"] for address in ("0.0.0.0", "::", "127.0.0.1", "::1")]
    for port in opened:
        shared.published(port)
    held = ports.listeners_of(shared.spawned.pid)
    assert len(held) >= 2 * len(opened)
    assert not [address for address, _ in held if address != "::1" and not address.startswith("127.")]
    for port in opened:
        shared.tell("close", port)


@pytest.mark.parametrize(
    ("address", "only_v6"), [("::1", True), ("::1", False), ("::", True), ("::", False), ("0.0.0.0", None)]
)
def test_servers_by_ipv6_alone_and_by_both(shared: Inside, address: str, only_v6: bool | None) -> None:
    """Whatever the server speaks, the host reaches it by IPv4 and by IPv6."""
    port = shared.tell("listen", address, 0, only_v6)["port"]
    entry = shared.published(port)
    assert entry["address"] == address
    for place in (*faces(entry), ("::1", entry["host_port"])):
        assert clients.ask_http(*place) == {"status": 200, "page": shared.page, "own_port": port}
    shared.tell("close", port)


def test_what_closes_is_withdrawn_and_comes_back_where_it_was(shared: Inside) -> None:
    shared.tell("listen", "127.0.0.1", 4100)
    before = shared.published(4100)
    shared.tell("close", 4100)
    assert 4100 not in [entry["port"] for entry in shared.ports()]
    ports.wait_until_free(*faces(before))
    shared.tell("listen", "127.0.0.1", 4100)
    after = shared.published(4100)
    assert faces(after) == faces(before)
    assert clients.ask_http(*faces(after)[0])["page"] == shared.page
    shared.tell("close", 4100)


def test_a_visitor_finds_out_that_a_server_is_gone(shared: Inside) -> None:
    """Nobody asks for the list: the first visitor is hung up on, and then the place on the host is free."""
    shared.tell("listen", "127.0.0.1", 4110)
    place = faces(shared.published(4110))[0]
    shared.tell("close", 4110)
    with pytest.raises(OSError):  # noqa: PT011 (refused, reset or hung up: all are answers)
        clients.ask_http(*place)
    ports.wait_until_free(place)


def test_a_server_that_restarts_is_always_the_new_one(shared: Inside) -> None:
    """As tools do that watch files: close, open, and the browser loads the same address again."""
    shared.tell("listen", "127.0.0.1", 4120)
    place = faces(shared.published(4120))[0]
    for number in range(5):
        shared.tell("close", 4120)
        shared.tell("name", f"page number {number}")
        shared.tell("listen", "127.0.0.1", 4120)
        assert clients.ask_http(*place)["page"] == f"page number {number}"
    shared.tell("name", shared.page)
    shared.tell("close", 4120)


ONE_SHOT = """
import socket
with socket.create_server(("127.0.0.1", 3000)) as server:
    print("ready", flush=True)
    client, _ = server.accept()
    client.recv(1000)
    client.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 60000\\r\\n\\r\\n" + 60000 * b"x")
"""


def test_the_last_answer_of_a_command_arrives_whole(netsandbox: CommandLine) -> None:
    """A server that answers once and ends, as those do that wait for a login in the browser."""
    running = netsandbox.spawn("run", "--name", "once", "--", netsandbox.python, "-c", ONE_SHOT)
    running.read_until(b"ready")
    entries = wait_for(lambda: json.loads(netsandbox("ports", "once", "--json").stdout), "the server")
    assert clients.ask_http(*faces(entries[0])[0])["page"] == 60000 * "x"
    assert running.wait() == 0


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_any_port_and_one_that_comes_back(puppet: Puppets, way: tuple[str, str]) -> None:
    """A server that asks for port 0 is told a port, which is published like any other and keeps its place."""
    session = puppet("--network-strategy", way[0], "--rewrite-engine", way[1])
    window = session.status()["window"]
    port = session.tell("listen", "127.0.0.1", 0)["port"]
    assert way[0] != "fail" or window["base"] <= port < window["base"] + window["count"]
    before = session.published(port)
    session.tell("close", port)
    assert session.ports() == []
    ports.wait_until_free(*faces(before))
    assert session.tell("listen", "127.0.0.1", port)["port"] == port
    assert faces(session.published(port)) == faces(before)
    for place in faces(before):
        assert clients.ask_http(*place) == {"status": 200, "page": session.page, "own_port": port}
    assert f"{session.page} {port}" in session.tell("connect", "localhost", port, CLOSING)["answer"]


def test_a_great_deal_both_ways_at_once(shared: Inside) -> None:
    """Eight megabytes out and back by several connections; the end of one direction is the end of that one only."""
    shared.tell("listen", "127.0.0.1", 4600)
    entry = shared.published(4600)
    data = os.urandom(1 << 20)

    def there_and_back(number: int) -> bool:
        with socket.create_connection(faces(entry)[0], 60) as sock, ThreadPoolExecutor(1) as pool:
            sock.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\n\r\n")
            reading = pool.submit(lambda: b"".join(iter(lambda: sock.recv(65536), b"")))
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            return reading.result(60) == data

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(there_and_back, range(8))) == [True] * 8
    shared.tell("close", 4600)


def test_a_server_on_two_sockets_is_one_port_until_both_are_closed(puppet: Puppets) -> None:
    session = puppet()
    for address in ("127.0.0.1", "::1"):
        session.tell("listen", address, 3000, True if address == "::1" else None)
    wait_for(lambda: session.events("listen", port=3000)[1:], "two listeners")
    entry = session.published(3000)
    session.tell("close", 3000)  # the later one
    assert [found["port"] for found in session.ports()] == [3000]
    assert clients.ask_http("127.0.0.1", entry["host_port"])["page"] == session.page


def test_only_named_ports_are_published(puppet: Puppets) -> None:
    session = puppet("--publish", "3000")
    session.tell("listen", "127.0.0.1", 3001)
    session.tell("listen", "127.0.0.1", 3000)
    entry = session.published(3000)
    wait_for(lambda: session.events("listen", port=3001), "a record of the other listener")
    assert [found["port"] for found in session.ports()] == [3000]
    assert not session.events("publish", port=3001)
    by_name = split_url(entry["url"])[1]
    numbers = {port for _, port in ports.listeners_of(session.spawned.pid)}
    assert numbers == {entry["host_port"], by_name}


@pytest.mark.parametrize("way", [way for way in WAYS if way[0] != "fail"], ids="-".join)
def test_a_port_is_published_where_it_was_wanted(puppet: Puppets, way: tuple[str, str]) -> None:
    """Its place on the host is held from the beginning, so nobody else can take it; and it is given back at the end."""
    wanted = ports.free_port()
    session = puppet("--network-strategy", way[0], "--rewrite-engine", way[1], "--publish", f"3000:{wanted}")
    addresses = [session.status()["device"]] if way[0] == "rewire-device" else ["127.0.0.1", "::1"]
    for address in addresses:
        assert not ports.can_bind(address, wanted)
        assert reach(address, wanted) is None
    assert session.tell("listen", "0.0.0.0", 3000)["port"] == 3000
    entry = session.published(3000)
    assert (entry["host_address"], entry["host_port"]) == (addresses[0], wanted)
    for address in addresses:
        assert clients.ask_http(address, wanted) == {"status": 200, "page": session.page, "own_port": 3000}
    session.close()
    ports.wait_until_free(*((address, wanted) for address in addresses))


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "0.0.0.0"])
def test_a_wanted_port_that_is_taken_is_an_error_before_anything_runs(
    netsandbox: CommandLine, canary: Any, address: str
) -> None:
    taken = canary.http(address)
    evidence = netsandbox.home().work / "began"
    run = netsandbox("run", "--publish", f"3000:{taken.port}", "--", "touch", evidence)
    assert run.returncode == 1
    assert f"port {taken.port} of this machine cannot be had" in run.stderr
    assert not evidence.exists()
    assert taken.accepts == 0


def test_nothing_is_published_when_nothing_shall_be(puppet: Puppets) -> None:
    session = puppet("--no-publish")
    session.tell("listen", "0.0.0.0", 3000)
    assert session.page in session.tell("connect", "127.0.0.1", 3000, CLOSING)["answer"]
    assert session.ports() == []
    assert ports.listeners_of(session.spawned.pid) == set()
    assert session.tell("environment") == {}


def test_publishing_and_not_publishing_exclude_each_other(netsandbox: CommandLine) -> None:
    evidence = netsandbox.home().work / "began"
    run = netsandbox("run", "--publish", "3000", "--no-publish", "--", "touch", evidence)
    assert run.returncode == 2
    assert "exclude each other" in run.stderr
    assert not evidence.exists()


STARVED = """
import os, signal, socket, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
spinning = []
for _ in range(2):
    child = os.fork()
    if child == 0:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            pass
        os._exit(0)
    spinning.append(child)
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
listeners = [socket.create_server(("127.0.0.1", 5000 + n)) for n in range(20)]
for child in spinning:
    os.kill(child, signal.SIGKILL)
print("ready", flush=True)
signal.pause()
"""


def test_a_server_that_hardly_gets_the_processor_is_published_too(netsandbox: CommandLine) -> None:
    """Between the question and the call itself a process can wait for long; then it is noticed later, not never."""
    running = netsandbox.spawn("run", "--name", "starved", "--", netsandbox.python, "-c", STARVED)
    running.read_until(b"ready", 60)

    def listed() -> bool:
        return len(json.loads(netsandbox("ports", "starved", "--json").stdout)) == 20

    wait_for(listed, "twenty servers")
