"""What the session's own loopback refused: told only where the host has a server, and the session has none later."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from netsandbox_portmap.localhost_settings import GATEWAY_PORT, HostPort, LocalhostSettings

from netsandbox.backends.linux import local_calls
from netsandbox.backends.linux.local_calls import CALL, LocalCalls
from tests.rig.fake_log import FakeLog


class Scene:
    def __init__(self, stderr: int = -1) -> None:
        self.log: Any = FakeLog()
        self.later: list[Callable[[], None]] = []
        settings = LocalhostSettings(connect_host=(HostPort(5432, 6432),))
        self.calls = LocalCalls(self.log, lambda _, act: self.later.append(act), settings, stderr)

    def told(self, kind: str, port: int, times: int = 1) -> None:
        self.calls.take(CALL.pack(42, times, port, ord(kind)) + b"/usr/bin/psql\0")


@pytest.fixture
def listeners(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The host's; changed by the test."""
    found = {5432, 6379}
    monkeypatch.setattr(local_calls, "host_listeners", lambda: set(found))
    monkeypatch.setattr(local_calls, "FRESH", -1.0)
    return found


def test_a_refusal_where_the_host_has_a_server_is_recorded_once_with_the_option(listeners: set[int]) -> None:
    scene = Scene()
    for times in (1, 2, 4):
        scene.told("r", 6379, times)
    assert scene.log.records == []
    scene.calls.close()
    (record,) = scene.log.of("egress")
    assert (record["verdict"], record["reason"], record["host"], record["port"]) == (
        "deny",
        "own-localhost",
        "localhost",
        6379,
    )
    assert (record["hint"], record["exe"], record["count"]) == ("--connect-host 6379", "/usr/bin/psql", 4)


def test_where_the_host_has_none_nothing_is_told_until_it_has(listeners: set[int]) -> None:
    scene = Scene()
    scene.told("r", 8080)
    scene.calls.close()
    assert scene.log.records == []
    listeners.add(8080)
    scene.told("r", 8080, 2)
    scene.calls.close()
    assert len(scene.log.records) == 1


def test_the_gateway_is_not_offered(listeners: set[int]) -> None:
    """A command that looks for it would get its user to open the servers of all sessions."""
    listeners.add(GATEWAY_PORT)
    scene = Scene()
    scene.told("r", GATEWAY_PORT)
    scene.told("r", 6379)
    scene.calls.close()
    assert [record["port"] for record in scene.log.records] == [6379]


def test_a_server_that_starts_later_takes_it_back(listeners: set[int]) -> None:
    """Programs poll a server of the session until it listens."""
    scene = Scene()
    scene.told("r", 6379)
    scene.told("c", 6379)
    scene.calls.close()
    assert scene.log.records == []


def test_a_long_session_records_it_after_a_while_and_not_again(listeners: set[int]) -> None:
    scene = Scene()
    scene.told("r", 6379)
    scene.later.pop()()
    scene.told("r", 6379, 2)
    scene.calls.close()
    assert len(scene.log.records) == 1


def test_the_number_of_ports_is_bounded(listeners: set[int]) -> None:
    scene = Scene()
    listeners.update(range(1, 100))
    for port in range(1, 100):
        scene.told("r", port)
    scene.calls.close()
    assert len(scene.log.records) == local_calls.MAX_PORTS


def test_a_kernel_that_does_not_tell_means_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> set[int]:
        raise OSError("the kernel refuses to list sockets")

    monkeypatch.setattr(local_calls, "host_listeners", refuse)
    scene = Scene()
    scene.told("r", 6379)
    scene.calls.close()
    assert scene.log.records == []


def test_a_bind_to_a_port_of_connect_host_is_one_line() -> None:
    near, far = os.pipe()
    scene = Scene(far)
    for port in (5432, 5432, 9000):
        scene.told("t", port)
    os.close(far)
    with os.fdopen(near) as told:
        (line,) = told.read().splitlines()
    assert line.startswith("netsandbox: port 5432 of this session leads to the host's localhost")
    assert "--connect-host 5432:6432" in line
