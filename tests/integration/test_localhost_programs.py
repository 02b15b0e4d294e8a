"""Real servers keep the ports they ask for, in every strategy and by every engine, and the host reaches them.

One session for each strategy, engine and account runs all servers at once. Under the preload engine the kernel refuses
what no library can rewrite: programs that make their system calls themselves, those written in Go among them, static or
not.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.rig import clients, ports
from tests.rig.canary import Canaries, StreamCanary
from tests.rig.command import CommandLine
from tests.rig.real_servers import RealServer
from tests.rig.servers_inside import ACCOUNTS, WAYS, Entry, Inside, split_url
from tests.rig.workshop import ROOT

pytestmark = pytest.mark.usefixtures("user_namespaces")

OUTSIDER = "outsider"  # in `fail`: a program that asks for a port outside of the window
NAMES = ("node", "cluster", "python", "asyncio", "nginx", "redis", "postgres", "go", "go-static", "c-static")


@dataclass
class Scene:
    """One session with all servers in it, what its first client saw, and what the host was told."""

    strategy: str
    engine: str
    session: Inside
    servers: dict[str, RealServer]
    heard: dict[str, Any]
    listed: dict[int, Entry]
    window: range
    canary: StreamCanary  # it listens on the host at the port that c-static asks for

    def is_refused(self, server: RealServer) -> bool:
        """In `fail` a port of the window needs no rewriting, so whoever asks for it may have it."""
        return server.raw and self.engine == "preload" and self.strategy != "fail"

    def found(self, server: RealServer) -> dict[str, Any]:
        return self.heard["servers"][server.name]  # type: ignore[no-any-return]

    def entry(self, server: RealServer) -> Entry:
        return self.listed[self.found(server)["port"]]


@pytest.fixture(scope="module", params=[(*way, who) for way in WAYS for who in ACCOUNTS], ids="-".join)
def scene(request: pytest.FixtureRequest, workbench: Any) -> Iterator[Scene]:
    strategy, engine, who = request.param
    line = CommandLine(request.getfixturevalue(who), request)
    canaries = Canaries(lambda: None, Path("/nonexistent"))  # type: ignore[arg-type, return-value]
    try:
        yield _play(line, strategy, engine, workbench(line.identity), canaries)
    finally:
        line.close()
        canaries.close()


def _play(line: CommandLine, strategy: str, engine: str, bench: Any, canaries: Canaries) -> Scene:
    canary = canaries.http(port=ports.free_port(), body=b"host")
    servers = bench.servers(c_port=canary.port)
    folder = line.home().work
    for name in ("clients.py", "conductor.py"):
        shutil.copy(ROOT / "tests/rig" / name, folder)
    wanted = [server.wanted(folder, place if strategy == "fail" else None) for place, server in enumerate(servers)]
    if strategy == "fail":
        outsider = replace(next(server for server in servers if server.name == "c-static"), name=OUTSIDER)
        servers.append(outsider)
        wanted.append(outsider.wanted(folder, None))
    (folder / "wanted.json").write_text(json.dumps(wanted))
    # A device is an IPv4 address: a socket that was told to do without IPv4 has no place there.
    bench.fill(folder, ipv6=(strategy, engine) != ("rewire-device", "preload"))
    shown = f"--allow-read={bench.folder.parent}"  # where the servers are, as toolchains in somebody's home
    options = ("--network-strategy", strategy, "--rewrite-engine", engine, shown)
    session = Inside(line, options, folder / "conductor.py", "wanted.json")
    heard = session.hear(90)
    base, count = (session.status()["window"][key] for key in ("base", "count"))
    for found in heard["servers"].values():
        if found["status"] is None and "answer" in found:
            session.published(found["port"])
    listed = {entry["port"]: entry for entry in session.ports()}
    by_name = {server.name: server for server in servers}
    return Scene(strategy, engine, session, by_name, heard, listed, range(base, base + count), canary)


@pytest.fixture(params=NAMES)
def server(request: pytest.FixtureRequest, scene: Scene) -> RealServer:
    return scene.servers[request.param]


def test_a_real_server_is_reached_from_the_host(scene: Scene, server: RealServer) -> None:
    if server.name == "postgres" and scene.session.line.identity.uid == 0:
        assert '"root" execution' in scene.found(server)["output"]  # its own rule, inside as outside
        return
    if scene.is_refused(server):
        check_refused(scene, server)
        return
    check_inside(scene, server)
    check_host(scene, server)
    check_records(scene, server)


def check_inside(scene: Scene, server: RealServer) -> None:
    """It runs, a client inside finds it at localhost and its port, and it sees the port it asked for."""
    found = scene.found(server)
    assert found["status"] is None, found
    assert found["answer"]["page"] == server.page
    assert server.name == "python" or found["answer"]["own_port"] == found["port"]
    if server.name in ("node", "go", "go-static", "c-static"):
        assert f"says {found['port']}\n" in found["output"]
    if server.name == "python":
        assert f"port {found['port']} " in found["output"]


def check_host(scene: Scene, server: RealServer) -> None:
    """By every address that `netsandbox ports` gives: the right page, and the server sees nothing odd."""
    entry, port = scene.entry(server), scene.found(server)["port"]
    for address, host_port in host_addresses(scene, entry):
        answer = ask(server, address, host_port)
        assert answer["page"] == server.page, (address, host_port)
        assert server.name == "python" or answer["own_port"] == port
    if server.kind == "http":
        host, host_port = split_url(entry["url"])
        assert clients.ask_http("127.0.0.1", host_port, host)["page"] == server.page


def ask(server: RealServer, address: str, port: int) -> clients.Answer:
    """node's cluster passes connections between its processes, and loses one where another test has used up the
    descriptors in flight that the account may have (unix(7)); so it is asked twice."""
    try:
        return clients.ask(server.kind, address, port)
    except TimeoutError:
        if server.name != "cluster":
            raise
    return clients.ask(server.kind, address, port)


def host_addresses(scene: Scene, entry: Entry) -> list[tuple[str, int]]:
    host, port, device = entry["host_address"], entry["host_port"], entry["device_address"]
    window = scene.window
    if scene.strategy == "rewire-device":
        assert (host, port) == (device, entry["port"])
        return [(host, port)]
    assert host == "127.0.0.1"
    assert port in window
    assert port == entry["port"] or scene.strategy != "fail"
    assert device is None
    return [(host, port), ("::1", port)]


def check_records(scene: Scene, server: RealServer) -> None:
    found, entry, session = scene.found(server), scene.entry(server), scene.session
    told = session.events("publish", port=found["port"])
    assert [(r["verdict"], r["host_address"], r["host_port"]) for r in told] == [
        ("allow", entry["host_address"], entry["host_port"])
    ]
    assert told[0]["exe"] == entry["exe"]
    kernel_port = entry["host_port"] if scene.engine == "preload" else found["port"]
    assert session.events("listen", port=kernel_port, verdict="allow")
    if scene.strategy == "fail" or scene.engine == "preload":
        assert session.events("bind", port=kernel_port, verdict="allow", protocol="tcp")
    if scene.strategy.startswith("rewire"):
        rewritten = {
            record["to"] for record in session.events("rewrite") if record["from"].endswith(f":{found['port']}")
        }
        assert f"{entry['host_address']}:{entry['host_port']}" in rewritten


def check_refused(scene: Scene, server: RealServer) -> None:
    """Refused by the kernel's side, said so once, recorded, published nowhere; the host's own port was not touched."""
    found, session = scene.found(server), scene.session
    device = scene.strategy == "rewire-device"
    assert found["status"] == 1
    words = "cannot assign requested address" if device else "permission denied"
    assert words in found["output"].lower()
    assert session.stderr.count(f"bind to 127.0.0.1:{found['port']} refused") == 1
    reason = "wrong-device" if device else "outside-window"
    denied = session.events("bind", port=found["port"], verdict="deny")
    assert {record["reason"] for record in denied} == {reason}
    assert {record["exe"] for record in denied} == {server.argv[0]}
    assert found["port"] not in scene.listed
    assert not session.events("listen", port=found["port"])
    assert scene.canary.accepts == 0


def test_the_hosts_own_port_was_never_touched(scene: Scene) -> None:
    """One asks for a port at which the host has a server of its own: neither is in the other's way."""
    if scene.strategy == "fail":
        check_refused(scene, scene.servers[OUTSIDER])
    assert scene.canary.accepts == 0
    assert clients.ask_http("127.0.0.1", scene.canary.port)["page"] == "host"


def test_only_loopback_is_bound_on_the_host(scene: Scene) -> None:
    held = ports.listeners_of(scene.session.spawned.pid)
    assert held
    assert not [address for address, _ in held if address != "::1" and not address.startswith("127.")]


def test_the_environment_names_the_window(scene: Scene) -> None:
    window, environment = scene.window, scene.heard["environment"]
    assert environment["LISTENING_BASE_PORT"] == str(window[0])
    assert environment["LISTENING_PORT_COUNT"] == str(len(window))
    assert ("LISTENING_LOOPBACK_DEVICE" in environment) == (scene.strategy == "rewire-device")
