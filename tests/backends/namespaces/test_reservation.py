"""What a session holds on Linux: without a port map nothing of the preload library is inside."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from netsandbox_interpose.library import LIBRARY, PORT_MAP
from netsandbox_portmap import REQUESTS_PORT
from netsandbox_portmap.localhost_settings import HostPort

from netsandbox.backends.namespaces.reservation import NamespaceReservation
from tests.rig import localhost_scene

free_range = localhost_scene.free_range
reserve = localhost_scene.reserve
state = localhost_scene.state
Reserve = Callable[..., NamespaceReservation]


def test_a_session_without_a_port_map_loads_no_library(reserve: Reserve) -> None:
    held = reserve(connect_host=(HostPort(5432), HostPort(6432, 8432)))
    assert held.map is None
    assert held.parts() == ()
    assert b"LD_PRELOAD" not in held.environment({b"A": b"1"})
    assert {door.port for door in held.doors()} == {5432, 6432}
    assert PORT_MAP not in [inside for _, inside in held.covers()]


@pytest.mark.parametrize(("strategy", "hosts"), [("rewire-port", False), ("rewire-device", True)])
def test_a_port_map_covers_its_placeholder_and_has_a_door_for_requests(
    reserve: Reserve, strategy: str, *, hosts: bool
) -> None:
    held = reserve(strategy=strategy, engine="preload")
    assert held.map is not None
    assert held.parts() == (LIBRARY, PORT_MAP)
    covers = {inside: outside for outside, inside in held.covers()}
    assert covers[PORT_MAP] == held.map.path
    assert ("/etc/hosts" in covers) == hosts
    assert {door.port for door in held.doors()} == {REQUESTS_PORT}
