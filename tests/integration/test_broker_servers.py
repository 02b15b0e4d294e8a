"""Servers of a session without a network of its own: their ports, their names, two sessions with the same port."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.test_localhost_programs import NAMES, Scene, _play, check_inside
from tests.rig import clients
from tests.rig.canary import Canaries
from tests.rig.command import CommandLine
from tests.rig.servers_inside import Puppets, split_url

pytestmark = pytest.mark.backend("broker")

Play = Callable[[str], Scene]


@pytest.fixture
def play(netsandbox: CommandLine, workbench: Any, canary: Canaries) -> Play:
    """play(strategy) -> a session with every server in it."""
    return lambda strategy: _play(netsandbox, strategy, "kernel", workbench(netsandbox.identity), canary)


@pytest.mark.open_files
@pytest.mark.parametrize("strategy", ["rewire-device", "rewire-port", "fail"])
def test_real_servers_are_reached_from_inside_and_from_the_host(play: Play, strategy: str) -> None:
    """node and its cluster, Python, nginx, Redis, PostgreSQL, static and dynamic Go, static C. In `fail` one asks for a
    port outside of the window, and is refused."""
    scene = play(strategy)
    for name in NAMES:
        server = scene.servers[name]
        if strategy == "rewire-port":  # an accepted socket shows the port of the host
            assert scene.found(server)["answer"]["page"] == server.page
        else:
            check_inside(scene, server)
        entry = scene.entry(server)
        answer = clients.ask(server.kind, entry["host_address"], entry["host_port"])
        assert answer["page"] == server.page, name
        if server.kind == "http":
            host, port = split_url(entry["url"])
            assert clients.ask_http("127.0.0.1", port, host)["page"] == server.page
        assert entry["host_port"] == entry["port"] or strategy == "rewire-port"
        assert entry["host_port"] in scene.window or strategy == "rewire-device"
    if strategy == "fail":
        assert scene.heard["servers"]["outsider"]["status"] == 1
    assert scene.canary.accepts == 0
    assert clients.ask_http("127.0.0.1", scene.canary.port)["page"] == "host"


def test_two_sessions_have_the_same_port(puppet: Puppets) -> None:
    """Each finds its own at localhost, and the host finds both by their names."""
    both = [puppet(), puppet()]
    for session in both:
        session.tell("listen", "127.0.0.1", 3000)
    entries = [session.published(3000) for session in both]
    assert len({entry["host_address"] for entry in entries}) == 2
    for session, entry in zip(both, entries, strict=True):
        host, port = split_url(entry["url"])
        assert clients.ask_http("127.0.0.1", port, host)["page"].startswith(session.page)
        assert clients.ask_http(entry["host_address"], 3000)["page"].startswith(session.page)
