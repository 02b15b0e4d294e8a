"""One port for the names of all sessions: who binds it, who gets a copy, and what happens when one of them ends."""

from __future__ import annotations

import os
import socket
from typing import Any

import pytest
from netsandbox_portmap import gateway as module
from netsandbox_portmap.handover import folder

from tests.rig.by_name import ask
from tests.rig.waiting import PATIENCE, wait_for

CLOSING = "GET /{} HTTP/1.1\r\nHost: {}.localhost\r\nConnection: close\r\n\r\n"


def serving(rig: Any, gateway: Any, name: str) -> None:
    def serve(peer: socket.socket) -> None:
        peer.recv(9999)
        peer.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(name), name.encode())
        )

    gateway.book.publish(3000, rig.server(serve).port)


@pytest.fixture
def pair(rig: Any, open_gateway: Any) -> tuple[Any, Any]:
    """Two sessions at one port."""
    first = open_gateway("red")
    second = open_gateway("blue", first.port)
    for gateway in (first, second):
        serving(rig, gateway, gateway.plan.name)
    return first, second


def page(rig: Any, speak: Any, port: int, name: str, address: str = "127.0.0.1") -> bytes:
    return ask(rig, speak, port, CLOSING.format("", name).encode(), address)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_each_name_leads_to_its_session_whoever_accepts(rig: Any, speak: Any, pair: Any, address: str) -> None:
    assert pair[0].port == pair[1].port
    for _ in range(6):
        for name in ("red", "blue"):
            assert page(rig, speak, pair[0].port, name, address).endswith(name.encode())


@pytest.mark.parametrize("ending", [0, 1])
def test_the_port_outlives_the_session_that_bound_it(rig: Any, speak: Any, pair: Any, ending: int) -> None:
    port, other = pair[0].port, pair[1 - ending]
    name = other.plan.name
    with rig.client(port) as waiting:  # its first byte was not sent yet
        rig.run(pair[ending].close)
        assert page(rig, speak, port, name).endswith(name.encode())
        waiting.sendall(CLOSING.format("", name).encode())
        assert speak.read_all(waiting).endswith(name.encode())
    rig.run(other.close)
    with pytest.raises(ConnectionRefusedError):
        rig.client(port)


def test_a_head_that_is_half_read_goes_on_in_another_session(rig: Any, speak: Any, pair: Any) -> None:
    request = CLOSING.format("", "blue").encode()
    clients = [rig.client(pair[0].port) for _ in range(8)]
    for client in clients:
        client.sendall(request[:20])
    wait_for(lambda: rig.run(lambda: sum(gateway.connections for gateway in pair)) == 8)
    rig.run(pair[0].close)
    for client in clients:
        client.sendall(request[20:])
        assert speak.read_all(client).endswith(b"blue")


def test_an_unknown_name_is_404_with_the_names_there_are(rig: Any, speak: Any, pair: Any) -> None:
    for host in ("green.localhost", "localhost", "x.red.localhost", "99999.red.localhost"):
        answer = ask(rig, speak, pair[0].port, f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 404 ")
        assert b"blue, red" in answer
        assert b"x-content-type-options: nosniff" in answer


@pytest.mark.attack(304)
@pytest.mark.parametrize("user", [os.geteuid() + 1, None])
def test_another_user_of_the_machine_learns_no_name(
    rig: Any, speak: Any, pair: Any, monkeypatch: pytest.MonkeyPatch, user: int | None
) -> None:
    """None: the kernel does not say whose the connection is."""
    monkeypatch.setattr("netsandbox_portmap.visit.peer_user", lambda sock: user)
    answer = ask(rig, speak, pair[0].port, b"GET / HTTP/1.1\r\nHost: green.localhost\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 404 ")
    assert b"green" in answer
    assert b"red" not in answer
    assert b"blue" not in answer


def test_a_session_that_takes_no_connection_is_503(rig: Any, speak: Any, pair: Any) -> None:
    path = f"{folder()}/stuck"
    with socket.socket(socket.AF_UNIX) as stuck, socket.socket(socket.AF_UNIX) as filler:
        stuck.bind(path)
        stuck.listen(0)
        filler.setblocking(False)
        filler.connect(path)
        assert page(rig, speak, pair[0].port, "stuck").startswith(b"HTTP/1.1 503 ")
    os.unlink(path)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_another_program_has_the_port(rig: Any, speak: Any, open_gateway: Any, address: str) -> None:
    taken = rig.server(address=address)
    fallback = speak.free_range(1)
    session = open_gateway("red", taken.port, fallback=fallback)
    assert session.port == fallback
    serving(rig, session, "red")
    assert page(rig, speak, fallback, "red").endswith(b"red")
    assert open_gateway("blue", taken.port).port is None  # its window has no port for names
    both = rig.server(port=speak.free_range(1))
    assert open_gateway("green", taken.port, fallback=both.port).port is None


def test_sessions_share_the_users_second_port_while_another_user_has_the_first(
    rig: Any, speak: Any, open_gateway: Any
) -> None:
    """The URL of a session is the same whatever its window, and whichever session is there first."""
    taken, second = rig.server(), speak.free_range(1)
    sessions = [open_gateway(name, taken.port, fallback=speak.free_range(1), second=second) for name in ("red", "blue")]
    assert [session.port for session in sessions] == [second, second]
    for session in sessions:
        serving(rig, session, session.plan.name)
    for name in ("red", "blue"):
        assert page(rig, speak, second, name).endswith(name.encode())
    rig.run(sessions[0].close)
    assert page(rig, speak, second, "blue").endswith(b"blue")


def test_the_second_port_is_not_used_while_the_first_is_free_and_may_be_taken_too(
    rig: Any, speak: Any, open_gateway: Any
) -> None:
    free, second, fallback = speak.free_range(1), speak.free_range(1), speak.free_range(1)
    assert open_gateway("red", free, second=second).port == free
    taken, also = rig.server(), rig.server()
    assert open_gateway("blue", taken.port, fallback=fallback, second=also.port).port == fallback


def test_a_session_at_its_own_port_hands_over_too(rig: Any, speak: Any, open_gateway: Any) -> None:
    taken = rig.server()
    sessions = [open_gateway(name, taken.port, fallback=speak.free_range(1)) for name in ("red", "blue")]
    for session in sessions:
        serving(rig, session, session.plan.name)
    assert page(rig, speak, sessions[0].port, "blue").endswith(b"blue")


@pytest.mark.usefixtures("neighbours")
def test_sessions_of_another_state_folder_are_other_programs(
    rig: Any, open_gateway: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_gateway("red")
    with monkeypatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
        second = open_gateway("blue", first.port)
        assert second.port is None
        rig.run(second.close)


def test_without_a_place_for_the_socket_names_are_at_the_windows_port(
    rig: Any, speak: Any, open_gateway: Any, tmp_path: Any
) -> None:
    (tmp_path / "netsandbox").write_text("not a folder")
    fallback = speak.free_range(1)
    assert open_gateway("red", fallback=fallback).port == fallback


def test_a_port_that_becomes_free_meanwhile_is_bound(
    rig: Any, speak: Any, open_gateway: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session that had it ended between our attempt and our question."""
    taken = rig.server()
    real = module.ListenersRequest

    def too_late(*arguments: Any) -> Any:
        taken.close()
        return real(*arguments)

    monkeypatch.setattr(module, "ListenersRequest", too_late)
    assert open_gateway("red", taken.port).port == taken.port


def test_sockets_of_another_port_are_not_taken(rig: Any, open_gateway: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = rig.server()
    monkeypatch.setattr(module.Gateway, "_listeners", lambda self, port: self._shared)
    other = open_gateway("red")
    assert other.port is not None
    assert open_gateway("blue", taken.port).port is None


def test_closing_while_it_still_asks_leaves_nothing(
    rig: Any, neighbours: None, monkeypatch: pytest.MonkeyPatch, open_gateway: Any
) -> None:
    monkeypatch.setattr(module.Gateway, "_decided", lambda self, port: pytest.fail("decided after close"))
    taken = rig.server()
    os.makedirs(folder(), 0o700)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(f"{folder()}/silent")
        silent.listen()
        plan = module.GatewayPlan("red", taken.port, None)
        made = rig.run(lambda: module.Gateway(rig.loop, plan, None, rig.inside, rig.relays))
        rig.run(lambda: made.open(lambda: None))
        rig.run(made.close)


def test_what_a_connection_moved_is_counted(rig: Any, speak: Any, pair: Any) -> None:
    before = rig.run(lambda: sum(gateway.moved for gateway in pair))
    page(rig, speak, pair[0].port, "red")
    wait_for(lambda: rig.run(lambda: sum(gateway.moved for gateway in pair)) > before)
    wait_for(lambda: rig.run(lambda: all(gateway.flows == 0 for gateway in pair)), PATIENCE)
