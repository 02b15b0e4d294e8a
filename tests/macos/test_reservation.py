"""What a session holds on a Mac before its command runs."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from netsandbox.audit.places import new_session_id, session_dir
from netsandbox.errors import HostError
from netsandbox.localhost.settings import LocalhostSettings
from netsandbox.macos import reservation
from netsandbox.macos.localhost_settings import mac_settings
from netsandbox.macos.reservation import MacReservation

Take = Callable[..., MacReservation]


@pytest.fixture
def take(place: Path) -> Iterator[Take]:
    (place / "state").mkdir()
    made: list[MacReservation] = []

    def take(strategy: str = "fail", session: str = "", **settings: Any) -> MacReservation:
        wanted = mac_settings(LocalhostSettings(strategy=strategy, **{"count": 3, **settings}))
        made.append(MacReservation(wanted, str(place / "state"), session or new_session_id()))
        return made[-1]

    yield take
    for held in made:
        held.close()


def test_the_doors_are_apart_from_one_another_and_from_the_window(take: Take) -> None:
    held = take()
    assert held.window is not None
    assert held.mixed.port != held.closed.port
    assert not {held.mixed.port, held.closed.port} & set(held.window.ports)
    assert held.map is None
    assert held.by_name_port is None


def test_two_sessions_have_nothing_in_common(take: Take) -> None:
    first, second = take(), take()
    assert first.window is not None
    assert second.window is not None
    assert not set(first.window.ports) & set(second.window.ports)
    assert first.mixed.port != second.mixed.port


def test_the_environment_names_the_window_and_with_a_map_the_map(take: Take) -> None:
    pytest.importorskip("netsandbox_interpose._native")
    session = new_session_id()
    held = take("rewire-port", session)
    assert held.window is not None
    made = held.environment({b"A": b"b"})
    assert made[b"LISTENING_BASE_PORT"] == b"%d" % held.window.base
    assert made[b"NETSANDBOX_PORT_MAP"] == os.fsencode(os.path.join(session_dir(session), "ports"))
    assert any(b"libnetsandbox_interpose" in value for value in made.values())
    assert os.path.exists(made[b"NETSANDBOX_PORT_MAP"])
    held.close()
    assert not os.path.exists(made[b"NETSANDBOX_PORT_MAP"])


def test_without_rewriting_no_library_is_wanted(take: Take) -> None:
    made = take("fail").environment({})
    assert sorted(made) == [b"LISTENING_BASE_PORT", b"LISTENING_PORT_COUNT"]


def test_the_library_asks_at_a_door_of_its_own(take: Take) -> None:
    pytest.importorskip("netsandbox_interpose._native")
    held = take("rewire-port")
    assert held.asking is not None
    assert held.asking.port not in (held.mixed.port, held.closed.port)
    socket.create_connection(("127.0.0.1", held.asking.port), 5).close()


def test_without_the_library_rewriting_is_an_error_that_names_what_needs_none(
    take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reservation, "LIBRARY", "/nowhere/library")
    for strategy in ("rewire-port", "rewire-device"):
        with pytest.raises(HostError, match="use --network-strategy fail"):
            take(strategy)
    assert take("fail").map is None


def test_a_device_that_this_mac_lacks_is_an_error_before_anything_else(
    take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reservation, "can_bind", lambda device: False)
    with pytest.raises(HostError, match=r"sudo ifconfig lo0 alias 127\.0\.0\.2"):
        take("rewire-device", device="127.0.0.2")
    pytest.importorskip("netsandbox_interpose._native")
    with pytest.raises(HostError, match=r"sudo ifconfig lo0 alias 127\.\d+\.\d+\.1"):
        take("rewire-device")


def test_what_was_held_is_free_when_taking_fails(take: Take, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reservation, "DoorSockets", _refuse)
    with pytest.raises(HostError, match="no door"):
        take(base=28100)
    monkeypatch.undo()
    held = take(base=28100)
    assert held.window is not None
    assert held.window.base == 28100


def _refuse(*_: Any, **__: Any) -> None:
    raise HostError("no door")
