"""What a session holds on a Mac before its command runs."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from netsandbox_interpose.library import LIBRARY
from netsandbox_portmap.localhost_settings import HostPort, LocalhostSettings

from netsandbox.backends.seatbelt import reservation
from netsandbox.backends.seatbelt.door_sockets import DoorSockets
from netsandbox.backends.seatbelt.localhost_settings import mac_settings
from netsandbox.backends.seatbelt.reservation import (
    TOKEN_BYTES,
    SeatbeltReservation,
    alias_command,
    can_bind,
    check_device,
    new_token,
    password,
    proxy_url,
    removal_command,
)
from netsandbox.errors import HostError
from netsandbox.paths import new_session_id, session_dir

Take = Callable[..., SeatbeltReservation]


@pytest.fixture
def take(place: Path) -> Iterator[Take]:
    (place / "state").mkdir()
    made: list[SeatbeltReservation] = []

    def take(strategy: str = "fail", session: str = "", **settings: Any) -> SeatbeltReservation:
        opens, library = settings.pop("opens", True), settings.pop("library", LIBRARY)
        local = LocalhostSettings(strategy=strategy, **{"count": 3, **settings})
        wanted = mac_settings(local, library=os.path.exists(library))
        session = session or new_session_id()
        made.append(SeatbeltReservation(wanted, str(place / "state"), session, opens=opens, library=library))
        return made[-1]

    yield take
    for held in made:
        held.close()


def doors(held: SeatbeltReservation) -> dict[str, int]:
    return {name: door.port for name, door in vars(held).items() if isinstance(door, DoorSockets)}


def read_map(held: SeatbeltReservation) -> Any:
    """The map as a program of the session reads it."""
    native = pytest.importorskip("netsandbox_interpose._native")
    assert held.map is not None
    table = native.ffi.new("struct ns_map *")
    native.ffi.buffer(table)[:] = Path(held.map.path).read_bytes()
    return table


def test_the_doors_are_apart_from_one_another_and_from_the_window(take: Take) -> None:
    pytest.importorskip("netsandbox_interpose._native")
    held = take()
    assert held.window is not None
    found = doors(held)
    assert sorted(found) == ["closed", "dns", "mixed", "requests"]
    assert len(set(found.values())) == 4
    assert not set(found.values()) & set(held.window.ports)
    assert held.by_name_port is None
    ports = held.ports()
    assert (ports.http, ports.dns, ports.requests) == (found["mixed"], found["dns"], found["requests"])
    assert (ports.base, ports.count) == (held.window.base, held.window.count)


def test_where_nothing_may_leave_there_is_a_map_and_no_door_in_it(take: Take) -> None:
    pytest.importorskip("netsandbox_interpose._native")
    held = take(opens=False)
    assert sorted(doors(held)) == ["closed", "requests"]
    table = read_map(held)
    assert (table.egress, table.resolver) == (0, 0)
    assert (held.ports().http, held.ports().dns) == (0, 0)


@pytest.mark.parametrize("strategy", ["fail", "rewire-port", "rewire-device"])
def test_the_map_names_the_doors_the_token_and_what_is_never_rewritten(take: Take, strategy: str) -> None:
    """With `rewire-device` a connection to 127.0.0.1 goes to another address: to the proxy it would never come."""
    pytest.importorskip("netsandbox_interpose._native")
    held = take(strategy, connect_host=(HostPort(5432),))
    assert held.mixed is not None
    assert held.dns is not None
    assert held.requests is not None
    table = read_map(held)
    assert (table.egress, table.resolver, table.door) == (held.mixed.port, held.dns.port, held.requests.port)
    passing = list(table.passing[0 : table.passing_count])
    assert sorted(passing) == sorted([held.mixed.port, held.dns.port, held.requests.port, 5432])
    assert bytes(table.token) == held.token


def test_each_session_has_a_token_of_its_own(take: Take) -> None:
    assert take().token != take().token


def test_two_sessions_have_nothing_in_common(take: Take) -> None:
    first, second = take(), take()
    assert first.window is not None
    assert second.window is not None
    assert not set(first.window.ports) & set(second.window.ports)
    assert not set(doors(first).values()) & set(doors(second).values())


@pytest.mark.parametrize("strategy", ["fail", "rewire-port"])
def test_the_environment_names_the_window_and_the_map(take: Take, strategy: str) -> None:
    pytest.importorskip("netsandbox_interpose._native")
    session = new_session_id()
    held = take(strategy, session)
    assert held.window is not None
    made = held.environment({b"A": b"b"})
    assert made[b"LISTENING_BASE_PORT"] == b"%d" % held.window.base
    assert made[b"NETSANDBOX_PORT_MAP"] == os.fsencode(os.path.join(session_dir(session), "ports"))
    assert any(b"libnetsandbox_interpose" in value for value in made.values())
    assert os.path.exists(made[b"NETSANDBOX_PORT_MAP"])
    held.close()
    assert not os.path.exists(made[b"NETSANDBOX_PORT_MAP"])


def test_without_the_library_nobody_is_told_of_a_map(take: Take) -> None:
    held = take("fail", library="/nowhere/library")
    assert sorted(held.environment({})) == [b"LISTENING_BASE_PORT", b"LISTENING_PORT_COUNT"]
    assert held.map is None
    assert held.requests is None
    assert held.mixed is not None


def test_the_library_asks_at_a_door_of_its_own(take: Take) -> None:
    pytest.importorskip("netsandbox_interpose._native")
    held = take("rewire-port")
    assert held.requests is not None
    socket.create_connection(("127.0.0.1", held.requests.port), 5).close()


def test_without_the_library_rewriting_is_an_error_that_names_what_needs_none(take: Take) -> None:
    for strategy in ("rewire-port", "rewire-device"):
        with pytest.raises(HostError, match="use --network-strategy fail"):
            take(strategy, library="/nowhere/library")


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
    with monkeypatch.context() as patch:
        patch.setattr(reservation, "DoorSockets", _refuse)
        with pytest.raises(HostError, match="no door"):
            take(base=28100)
    held = take(base=28100)
    assert held.window is not None
    assert held.window.base == 28100


def _refuse(*_: Any, **__: Any) -> None:
    raise HostError("no door")


def test_a_missing_address_is_named_with_the_command_that_makes_it() -> None:
    with pytest.raises(HostError) as caught:
        check_device("127.78.32.1", lambda device: False)
    assert "`sudo ifconfig lo0 alias 127.78.32.1`" in str(caught.value)
    assert "`sudo ifconfig lo0 -alias 127.78.32.1`" in str(caught.value)
    assert "--listening-loopback 127.78.32.1" in str(caught.value)
    assert "rewire-port" in str(caught.value)


def test_an_address_that_is_there_is_fine() -> None:
    check_device("127.78.32.1", lambda device: True)


def test_what_was_added_can_be_taken_away() -> None:
    assert alias_command("127.0.0.2") == "sudo ifconfig lo0 alias 127.0.0.2"
    assert removal_command("127.0.0.2") == "sudo ifconfig lo0 -alias 127.0.0.2"


def test_the_trial_tells_addresses_of_this_host_from_others() -> None:
    assert can_bind("127.0.0.1")
    assert not can_bind("192.0.2.1")


def test_what_cannot_be_tried_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def bind(self, place: object) -> None:
            raise OSError(1, "no")

        def close(self) -> None: ...

    monkeypatch.setattr("netsandbox.backends.seatbelt.reservation._socket.socket", lambda *_: Broken())
    with pytest.raises(HostError, match="cannot tell"):
        can_bind("127.0.0.1")


@pytest.mark.attack(184)
def test_a_token_has_128_bits_and_is_never_the_same() -> None:
    tokens = {new_token() for _ in range(1000)}
    assert len(tokens) == 1000
    assert TOKEN_BYTES * 8 >= 128
    assert all(bytes.fromhex(password(token).decode()) == token for token in tokens)
    assert {len(token) for token in tokens} == {TOKEN_BYTES}


def test_clients_read_the_url_as_it_is_meant() -> None:
    token = new_token()
    url = urlsplit(proxy_url(50123, token).decode())
    assert (url.scheme, url.hostname, url.port, url.password) == ("http", "localhost", 50123, token.hex())
