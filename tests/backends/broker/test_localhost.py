"""Where the servers of a session without a network of its own listen, by strategy."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from netsandbox_portmap.localhost_service import SessionNetwork
from netsandbox_portmap.localhost_settings import LocalhostSettings
from netsandbox_portmap.reservation import Reservation

from netsandbox.backends.broker.localhost import BrokerLocalhost, HostTable, SharedSockets
from netsandbox.runtime.loop import Loop
from tests.rig.fake_log import FakeLog
from tests.rig.localhost_scene import free_range, log, state  # noqa: F401 (fixtures)
from tests.rig.pipe import Pipe

Serve = Callable[..., "Scene"]


class Scene:
    def __init__(self, log: FakeLog, held: Reservation) -> None:  # noqa: F811
        self.log, self.held = log, held
        self.errors: list[BaseException] = []
        self.loop, self.pipe = Loop(self.errors.append), Pipe()
        network = SessionNetwork(SharedSockets(), HostTable(), {})
        self.service = BrokerLocalhost(self.loop, log, held, network, stderr=self.pipe.writing)  # type: ignore[arg-type]
        assert held.window is not None
        self.window = held.window

    def place(self, address: str, port: int) -> tuple[int, str, int]:
        return self.service.place(7, "/bin/server", address, port, "tcp")

    def close(self) -> None:
        self.service.close()
        self.held.close()
        self.loop.close()
        self.pipe.close()
        assert self.errors == []


@pytest.fixture
def serve(state: Any, free_range: Any, log: FakeLog) -> Iterator[Serve]:  # noqa: F811
    """serve(strategy) -> the localhost of a session with a window of ten ports."""
    scenes: list[Scene] = []
    first = free_range(31)

    def begin(strategy: str, **settings: Any) -> Scene:
        chosen = {"pool": (first, first + 29), "count": 10, "gateway_port": first + 30, **settings}
        held = Reservation(LocalhostSettings(strategy=strategy, **chosen), str(state))
        scenes.append(Scene(log, held))
        return scenes[-1]

    yield begin
    for scene in scenes:
        scene.close()


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_with_a_device_a_port_keeps_its_number(serve: Serve, address: str) -> None:
    scene = serve("rewire-device")
    assert scene.place(address, 3000) == (0, scene.window.device, 3000)
    assert scene.place(address, 0) == (0, scene.window.device, 0)


def test_its_own_device_may_be_named(serve: Serve) -> None:
    scene = serve("rewire-device")
    assert scene.place(scene.window.device, 3000) == (0, scene.window.device, 3000)


@pytest.mark.parametrize("strategy", ["rewire-device", "rewire-port", "fail"])
@pytest.mark.parametrize("address", ["127.0.0.2", "192.0.2.1", "2001:db8::1", "fe80::1", "255.255.255.255"])
def test_any_other_address_is_refused(serve: Serve, log: FakeLog, strategy: str, address: str) -> None:  # noqa: F811
    scene = serve(strategy)
    number, _, _ = scene.place(address, scene.window.base)
    assert number == errno.EADDRNOTAVAIL
    scene.service.close()
    assert [(r["verdict"], r["reason"]) for r in log.of("bind")] == [("deny", "wrong-device")]


@pytest.mark.parametrize("strategy", ["rewire-device", "rewire-port"])
@pytest.mark.parametrize("port", [1, 80, 1023])
def test_a_port_that_needs_a_capability_is_refused(serve: Serve, strategy: str, port: int) -> None:
    assert serve(strategy).place("127.0.0.1", port)[0] == errno.EACCES


def test_rewired_ports_are_of_the_window_and_stay(serve: Serve) -> None:
    scene = serve("rewire-port")
    number, address, given = scene.place("127.0.0.1", 3000)
    assert (number, address) == (0, "127.0.0.1")
    assert given in scene.window
    assert scene.place("::", 3000) == (0, "127.0.0.1", given)
    assert scene.place("0.0.0.0", 0)[2] in scene.window


def test_a_full_window_is_a_port_in_use(serve: Serve, log: FakeLog) -> None:  # noqa: F811
    """As long as a server listens at each of its ports."""
    scene = serve("rewire-port", count=2)
    with contextlib.ExitStack() as servers:
        answers = []
        for port in range(3000, 3004):
            number, address, given = scene.place("127.0.0.1", port)
            answers.append(number)
            if number == 0:
                servers.enter_context(socket.create_server((address, given)))
    assert answers[0] == 0
    assert answers[-1] == errno.EADDRINUSE
    scene.service.close()
    assert {r["reason"] for r in log.of("bind")} == {"window-full"}


def test_fail_gives_ports_of_the_window_only_and_records_first(serve: Serve, log: FakeLog) -> None:  # noqa: F811
    """INV-5: what cannot be recorded is refused."""
    scene = serve("fail")
    base = scene.window.base
    assert scene.place("127.0.0.1", 3000)[0] == errno.EACCES
    assert scene.place("127.0.0.1", base) == (0, "127.0.0.1", base)
    assert scene.place("::", 0)[2] in scene.window
    log.failed = "disk full"
    assert scene.place("127.0.0.1", base + 1)[0] == errno.EACCES


def test_a_server_is_published_by_being_there(serve: Serve, log: FakeLog) -> None:  # noqa: F811
    scene = serve("rewire-port")
    _, address, given = scene.place("0.0.0.0", 3000)
    with socket.create_server((address, given)):
        scene.service.listening(address, given, 7, "/bin/server")
        (shown,) = scene.service.status()
        assert (shown["port"], shown["host_address"], shown["host_port"]) == (3000, address, given)
    assert scene.service.status() == []  # it is withdrawn with its socket
    assert [r["event"] for r in log.records][:2] == ["listen", "publish"]


def test_the_table_of_the_host_tells_mapped_addresses_as_ipv4() -> None:
    table = HostTable()
    with socket.socket(socket.AF_INET6) as server:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.bind(("::ffff:127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        assert ("127.0.0.1", port) in [(address, number) for address, number, _ in table.listening()]
        assert port in table.ports_in_use(bound=True)
    table.close()
