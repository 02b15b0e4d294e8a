"""What the preloaded library is told before a bind: a port of the window, the same port, or an error."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from netsandbox_interpose._native import ffi

UDP = 17


def written(scene: Any) -> dict[int, int]:
    """What stands in the map, as the preloaded library reads it: port of the window -> port that was requested."""
    table = ffi.from_buffer("struct ns_map *", Path(scene.reservation.map.path).read_bytes())
    return {
        table.base + slot: requested for slot, requested in enumerate(table.requested[0 : table.count]) if requested
    }


@pytest.fixture
def preload(serve: Callable[..., Any]) -> Callable[..., Any]:
    return lambda strategy, **more: serve(strategy=strategy, engine="preload", **more)


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_port_gets_one_of_the_window_and_keeps_it(preload: Callable[..., Any], log: Any, address: str) -> None:
    scene = preload("rewire-port")
    number, given = scene.answer(address, 3000)
    assert number == 0
    assert given in scene.window
    assert written(scene) == {given: 3000}
    assert [(r["from"], r["to"]) for r in log.of("rewrite")] == [(f"{address}:3000", f"127.0.0.1:{given}")]
    assert scene.answer(address, 3000) == (0, given)
    assert scene.answer(address, 3001)[1] != given


def test_any_port_stands_for_itself(preload: Callable[..., Any]) -> None:
    scene = preload("rewire-port")
    number, given = scene.answer("127.0.0.1", 0)
    assert number == 0
    assert written(scene) == {given: given}


def test_no_record_no_rewriting(preload: Callable[..., Any], log: Any) -> None:
    """INV-5: nothing is given out, and nothing put in the map."""
    for strategy in ("rewire-port", "rewire-device"):
        scene = preload(strategy)
        log.failed = "disk full"
        assert scene.answer("127.0.0.1", 3000)[0] == errno.EACCES
        assert written(scene) == {}
        log.failed = None


@pytest.mark.parametrize("strategy", ["fail", "rewire-port", "rewire-device"])
def test_a_foreign_address_is_refused_recorded_and_told(preload: Callable[..., Any], log: Any, strategy: str) -> None:
    scene = preload(strategy)
    port = scene.window.base
    assert scene.answer("192.0.2.1", port, UDP) == (errno.EADDRNOTAVAIL, 0)
    (record,) = log.of("bind")
    assert (record["verdict"], record["reason"], record["door"]) == ("deny", "wrong-device", "preload")
    assert (record["address"], record["port"], record["protocol"]) == ("192.0.2.1", port, "udp")
    assert "192.0.2.1" in scene.told()
    assert written(scene) == {}


def test_a_window_that_is_full_says_so(preload: Callable[..., Any], log: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = preload("rewire-port", count=3)
    used: set[int] = set()
    monkeypatch.setattr(scene.service._network.table, "ports_in_use", lambda bound: set(used))
    for port in (3000, 3001):
        number, given = scene.answer("127.0.0.1", port)
        assert number == 0
        used.add(given)
    assert scene.answer("127.0.0.1", 3002) == (errno.EADDRINUSE, 0)
    assert [record["reason"] for record in log.of("bind")] == ["window-full"]
    assert len(written(scene)) == 2
    used.clear()
    assert scene.answer("127.0.0.1", 3002)[0] == 0  # room is made where nothing stands any more


def test_fail_says_what_the_guard_will_say(preload: Callable[..., Any], log: Any) -> None:
    scene = preload("fail")
    inside, outside = scene.window.base + 2, scene.window.base - 1
    assert scene.answer("127.0.0.1", inside) == (0, inside)
    assert scene.answer("127.0.0.1", outside) == (errno.EACCES, 0)
    number, given = scene.answer("0.0.0.0", 0)
    assert number == 0
    assert given in scene.window
    assert [record["reason"] for record in log.of("bind")] == ["outside-window"]
    assert f":{outside} refused" in scene.told()


def test_a_device_has_every_port_but_the_privileged(preload: Callable[..., Any], log: Any) -> None:
    scene = preload("rewire-device")
    for port in (3000, 65535, 0):
        assert scene.answer("127.0.0.1", port) == (0, port)
    assert log.of("rewrite")[0]["to"] == f"{scene.window.device}:3000"
    assert scene.answer("127.0.0.1", 80) == (errno.EACCES, 0)
    assert "below 1024" in scene.told()


def test_a_listener_is_published_as_what_the_program_asked_for(preload: Callable[..., Any], log: Any) -> None:
    scene = preload("rewire-port")
    _, given = scene.answer("127.0.0.1", 3000)
    scene.service.listening("127.0.0.1", given, 7, "/bin/server")
    assert scene.service._publisher is not None
    assert [found.port for found in scene.service._publisher.published()] == [3000]
    assert len(log.of("rewrite")) == 1  # written when it was requested


def test_a_program_that_binds_its_device_is_left_alone(preload: Callable[..., Any], log: Any) -> None:
    scene = preload("rewire-device")
    assert scene.answer(scene.window.device, 3000) == (0, 3000)
    assert log.records == []


def test_any_port_of_a_full_window_is_refused_recorded_and_told(
    preload: Callable[..., Any], log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = preload("fail", count=1)
    monkeypatch.setattr(scene.service._network.table, "ports_in_use", lambda bound: set(scene.window.ports))
    assert scene.answer("127.0.0.1", 0) == (errno.EADDRINUSE, 0)
    assert [record["reason"] for record in log.of("bind")] == ["window-full"]


def test_the_same_question_again_and_again_is_one_record(preload: Callable[..., Any], log: Any) -> None:
    """Whoever can read the token can ask as often as it likes."""
    scene = preload("rewire-port")
    for _ in range(50):
        scene.answer("127.0.0.1", 3000)
        scene.answer("192.0.2.1", 3000)
    assert len(log.records) == 2
