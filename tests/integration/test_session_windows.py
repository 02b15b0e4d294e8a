"""What a session holds on the host, and for how long: its window, its device, its name, the ports it may reach."""

from __future__ import annotations

import json
import os
import signal
import socket
from typing import Any

import pytest
from netsandbox_portmap.ranges import RangeLock
from netsandbox_portmap.reservation import HOST_LOCKS

from tests.rig import clients, ports
from tests.rig.command import CommandLine
from tests.rig.leftovers import Leftovers, what_stays
from tests.rig.servers_inside import CLOSING, WAYS, Inside, Puppets, faces, wait_for

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]


def test_the_window_can_be_chosen_and_is_nobody_elses(puppet: Puppets, netsandbox: CommandLine) -> None:
    base = puppet().status()["window"]["base"]
    evidence = netsandbox.home().work / "began"
    run = netsandbox("run", "--listening-base-port", str(base + 1), "--", "touch", evidence)
    assert run.returncode == 1
    assert str(base + 1) in run.stderr
    assert not evidence.exists()
    free, device = ports.free_window(3), ports.free_device()
    chosen = ("--listening-base-port", str(free), "--listening-port-count", "3", "--listening-loopback", device)
    small = puppet(*chosen)
    said = small.tell("environment")
    assert [said[f"LISTENING_{name}"] for name in ("BASE_PORT", "PORT_COUNT", "LOOPBACK_DEVICE")] == [
        str(free),
        "3",
        device,
    ]
    small.tell("listen", "127.0.0.1", 3000)
    assert faces(small.published(3000))[1] == (device, 3000)


def test_a_full_window_publishes_no_more_and_says_so(puppet: Puppets) -> None:
    """The server itself goes on inside. The last port of a window is the session's name."""
    session = puppet("--listening-base-port", str(ports.free_window(2)), "--listening-port-count", "2")
    session.tell("listen", "127.0.0.1", 3000)
    session.published(3000)
    session.tell("listen", "127.0.0.1", 3001)
    denied = wait_for(lambda: session.events("publish", port=3001), "a record")
    assert (denied[0]["verdict"], denied[0]["reason"]) == ("deny", "window-full")
    assert [entry["port"] for entry in session.ports()] == [3000]
    assert session.page in session.tell("connect", "127.0.0.1", 3001, CLOSING)["answer"]


def test_a_window_of_one_port_has_urls_without_a_name_where_the_gateway_is_taken(puppet: Puppets, canary: Any) -> None:
    taken = canary.http("127.0.0.1")
    window = ("--listening-base-port", str(ports.free_port()), "--listening-port-count", "1")
    session = puppet(*window, "--gateway-port", str(taken.port))
    session.tell("listen", "127.0.0.1", 3000)
    entry = session.published(3000)
    assert entry["url"] == f"http://127.0.0.1:{entry['host_port']}/"
    assert clients.ask_http("127.0.0.1", entry["host_port"])["page"] == session.page
    assert taken.accepts == 0


def test_a_place_that_the_host_took_meanwhile_is_left_alone(puppet: Puppets, canary: Any) -> None:
    """The window was free when it was taken; a server of the host that came later keeps its port."""
    session = puppet()
    base = session.status()["window"]["base"]
    stranger = canary.http(port=base, body=b"host")
    session.tell("listen", "127.0.0.1", 3000)  # would stand at the first port of the window
    entry = session.published(3000)
    assert entry["host_port"] != base
    assert clients.ask_http("127.0.0.1", entry["host_port"])["page"] == session.page
    assert stranger.accepts == 0


def test_a_device_of_its_own_is_the_only_one_to_bind(puppet: Puppets) -> None:
    device = ports.free_device()
    session = puppet("--network-strategy", "fail", "--listening-loopback", device)
    base = int(session.tell("environment")["LISTENING_BASE_PORT"])
    assert session.tell("listen", "127.0.0.1", base) == {"error": "EADDRNOTAVAIL"}
    assert session.tell("listen", "0.0.0.0", base) == {"error": "EADDRNOTAVAIL"}
    assert session.tell("listen", device, base - 1) == {"error": "EACCES"}
    assert session.tell("listen", device, base)["port"] == base
    assert faces(session.published(base))[0] == (device, base)
    assert clients.ask_http(device, base)["page"] == session.page
    assert session.stderr.count("refused") == 3
    reasons = [record["reason"] for record in session.events("bind", verdict="deny")]
    assert sorted(set(reasons)) == ["outside-window", "wrong-device"]


@pytest.mark.parametrize("engine", ["kernel", "preload"])
def test_a_program_may_bind_the_device_that_it_was_told(puppet: Puppets, engine: str) -> None:
    session = puppet("--network-strategy", "rewire-device", "--rewrite-engine", engine)
    device = session.tell("environment")["LISTENING_LOOPBACK_DEVICE"]
    assert session.tell("listen", device, 3000)["port"] == 3000
    assert faces(session.published(3000)) == [(device, 3000)]
    assert clients.ask_http(device, 3000) == {"status": 200, "page": session.page, "own_port": 3000}
    assert session.page in session.tell("connect", device, 3000, CLOSING)["answer"]


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_the_hosts_port_is_reached_only_where_allowed(puppet: Puppets, canary: Any, way: tuple[str, str]) -> None:
    """By IPv4 and IPv6 inside, at the same number; the port beside it stays out of reach."""
    allowed, denied = canary.http(body=b"from the host"), canary.http(body=b"secret")
    session = puppet("--network-strategy", way[0], "--rewrite-engine", way[1], "--connect-host", str(allowed.port))
    for address in ("127.0.0.1", "::1", "localhost"):
        assert "from the host" in session.tell("connect", address, allowed.port, CLOSING)["answer"]
        assert session.tell("connect", address, denied.port, CLOSING) == {"error": "ECONNREFUSED"}
    assert allowed.wait(accepts=3)
    assert (allowed.accepts, denied.accepts) == (3, 0)
    rule = f"--connect-host {allowed.port}"
    told = session.events("egress", door="host")
    assert [(r["verdict"], r["host"], r["port"], r["rule"]) for r in told] == [
        ("allow", "localhost", allowed.port, rule)
    ] * 3
    ended = wait_for(lambda: session.events("egress.end", door="host")[2:], "three ends")
    assert ended[0]["bytes_up"] == len(CLOSING)
    assert ended[0]["bytes_down"] > len("from the host")
    taken = ["EADDRINUSE"] if way[1] == "kernel" else ["EADDRINUSE", "EACCES", "EADDRNOTAVAIL"]
    for address in ("127.0.0.1", "::1", "0.0.0.0"):
        error = session.tell("listen", address, allowed.port)["error"]
        assert error in (["EACCES"] if way[0] == "fail" else taken)  # in `fail` it is outside of the window
    assert session.ports() == []


def test_sessions_are_listed_opened_and_stopped(puppet: Puppets, netsandbox: CommandLine) -> None:
    one, two = puppet(), puppet("--network-strategy", "rewire-port")
    one.tell("listen", "127.0.0.1", 3000)
    entry = one.published(3000)
    status = {session.name: session.status() for session in (one, two)}
    assert status[two.name]["strategy"] == "rewire-port"
    assert status[one.name]["pid"] == one.spawned.pid
    assert [found["port"] for found in status[one.name]["ports"]] == [3000]
    table = netsandbox("ps").stdout
    assert one.name in table
    assert two.name in table
    assert entry["url"] in netsandbox("ports").stdout
    assert {"session", "name", "port", "host_address", "host_port", "url", "pid", "exe"} <= entry.keys()
    assert os.path.samefile(f"/proc/{entry['pid']}/exe", entry["exe"])
    assert netsandbox("open", one.name, "--print").stdout.strip() == entry["url"]
    assert netsandbox("stop", one.name).returncode == 0
    assert one.spawned.wait() == -signal.SIGTERM
    ports.wait_until_free(*faces(entry))
    assert one.name not in netsandbox("ps").stdout
    assert two.spawned.process.poll() is None
    assert netsandbox("stop", "--all").returncode == 0
    two.spawned.wait()
    assert json.loads(netsandbox("ps", "--json").stdout) == []


class Held:
    """What a session with two published ports has on the host: listeners, its window, its processes."""

    def __init__(self, session: Inside, leftovers: Leftovers) -> None:
        for port in (3000, 3001):
            session.tell("listen", "127.0.0.1", port)
        self.places = [face for port in (3000, 3001) for face in faces(session.published(port))]
        window = session.status()["window"]
        self.base, self.count = window["base"], window["count"]
        self.watch = leftovers.watch(session.spawned)

    def remains(self) -> list[object]:
        locks = RangeLock.open(HOST_LOCKS, shared=True)
        locked = locks.obstacle(self.base, self.count)
        locks.close()
        taken = [place for place in self.places if not ports.can_bind(*place)]
        return [*taken, *([("locked", *locked)] if locked else []), *self.watch.remains()]

    def after_a_second(self) -> list[object]:
        """What is still there then; earlier if nothing is."""
        return what_stays(self.remains)


def test_a_killed_supervisor_gives_everything_back_within_a_second(
    puppet: Puppets, netsandbox: CommandLine, leftovers: Leftovers
) -> None:
    """INV-10, from the moment at which the supervisor is seen dead.

    Whatever else runs here may keep the kernel from its work for a second, so that one scene of three has to do it.
    """
    left: list[object] = []
    for _ in range(3):
        wanted = ports.free_port()
        window = ("--listening-base-port", str(ports.free_window(100)))  # one that no other session is given by itself
        session = puppet(*window, "--publish", f"3000:{wanted}", "--publish", "3001")
        held = Held(session, leftovers)
        assert ("locked", held.base, held.count) in held.remains()
        session.spawned.signal(signal.SIGKILL)
        session.spawned.wait()
        left = held.after_a_second()
        if not left:
            break
    assert not left
    again = ("--listening-base-port", str(held.base), "--publish", f"3000:{wanted}", "--name", session.name)
    run = netsandbox("run", *again, "--", "echo", "again")
    assert run.stdout == "again\n", run.stderr
    assert session.name not in netsandbox("ps").stdout


def test_a_small_window_is_taken_where_the_host_has_room(puppet: Puppets, canary: Any, netsandbox: CommandLine) -> None:
    """What a program of the host has is passed over. The pool is one that no other session has."""
    base = ports.free_window(20)
    pool = netsandbox.home().path / "pool.toml"
    pool.write_text(f"[localhost]\nport_pool = [{base}, {base + 19}]\n")
    small = ("--config", str(pool), "--listening-port-count", "1")
    first = puppet(*small)
    assert first.status()["window"]["base"] == base
    first.close()
    ports.wait_until_free(("127.0.0.1", base))
    stranger = canary.http(port=base)
    session = puppet(*small)
    session.tell("listen", "127.0.0.1", 3000)
    entry = session.published(3000)
    assert clients.ask_http("127.0.0.1", entry["host_port"])["page"] == session.page
    assert stranger.accepts == 0


def test_a_session_that_is_started_again_has_its_ports_again(puppet: Puppets) -> None:
    """Connections that the server closed linger on the host for a minute; they are in nobody's way."""
    base = ports.free_port()
    chosen = ("--listening-base-port", str(base), "--listening-port-count", "1")
    for _ in range(2):
        session = puppet(*chosen)
        session.tell("listen", "127.0.0.1", 3000)
        assert session.published(3000)["host_port"] == base
        with socket.create_connection(("127.0.0.1", base), 10) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n\r\n")  # an empty head at the end: the server hangs up first
            while client.recv(1000):
                pass
        session.close()
        ports.wait_until_free(("127.0.0.1", base))
        assert not ports.is_untouched("127.0.0.1", base)
