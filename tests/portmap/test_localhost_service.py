"""A session's localhost, served: published after its record, and what is asked is answered by the rule."""

from __future__ import annotations

import _socket
import errno
import socket
from collections.abc import Callable
from typing import Any

import pytest
from netsandbox_portmap import DOOR_PORTS
from netsandbox_portmap.bind_requests import MAGIC, REQUEST, REQUEST_BIND, reply
from netsandbox_portmap.bind_responder import BindResponder
from netsandbox_portmap.localhost_settings import HostPort

PATIENCE = 10.0


def test_what_listens_is_published_after_its_records(
    serve: Callable[..., Any], server: socket.socket, log: Any
) -> None:
    scene = serve()
    port = scene.hear(server)
    assert [record["event"] for record in log.records] == ["listen", "publish"]
    listen, publish = log.records
    assert (listen["address"], listen["port"], listen["pid"], listen["exe"]) == ("127.0.0.1", port, 7, "/bin/server")
    (shown,) = scene.service.status()
    assert (shown["port"], shown["host_address"], shown["pid"]) == (port, "127.0.0.1", 7)
    assert shown["host_port"] in scene.window
    assert shown["host_port"] != scene.reservation.by_name_port
    assert publish["host_port"] == shown["host_port"]
    with socket.create_connection(("127.0.0.1", int(str(shown["host_port"]))), timeout=PATIENCE) as client:
        scene.until(lambda: scene.service.flows == 1)
        peer, _ = server.accept()
        with peer:
            client.sendall(b"x")
            peer.setblocking(False)
            scene.until(lambda: _ready(peer))


def _ready(sock: socket.socket) -> bool:
    try:
        return bool(sock.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


def test_no_record_no_publishing(serve: Callable[..., Any], server: socket.socket, log: Any) -> None:
    """INV-5."""
    scene = serve()
    log.failed = "disk full"
    scene.hear(server)
    assert scene.service.published() == []
    for port in scene.window.ports:
        if port != scene.reservation.by_name_port:
            with socket.socket() as client:
                assert client.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


def test_what_no_longer_listens_is_withdrawn(serve: Callable[..., Any], log: Any) -> None:
    scene = serve()
    with socket.create_server(("127.0.0.1", 0)) as server:
        scene.hear(server)
        (shown,) = scene.service.published()
    assert scene.service.published() == []
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", shown.host_port)) == errno.ECONNREFUSED


def test_a_connection_that_finds_nobody_withdraws_the_port(serve: Callable[..., Any]) -> None:
    scene = serve()
    with socket.create_server(("127.0.0.1", 0)) as server:
        scene.hear(server)
        (shown,) = scene.service.published()
    with socket.create_connection(("127.0.0.1", shown.host_port), timeout=PATIENCE):
        assert scene.service._publisher is not None
        publisher = scene.service._publisher
        scene.until(lambda: publisher.published() == [])


def test_without_publishing_a_listener_is_recorded_only(
    serve: Callable[..., Any], server: socket.socket, log: Any
) -> None:
    for settings in ({"publish": ()}, {"strategy": "rewire-device", "publish": ()}):
        log.records.clear()
        scene = serve(**settings)
        scene.hear(server)
        assert [record["event"] for record in log.records] == ["listen"]
        assert scene.service.status() == []


def test_only_what_was_asked_for_is_published(serve: Callable[..., Any], server: socket.socket) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        scene = serve(publish=((server.getsockname()[1], None),))
        scene.hear(other)
        port = scene.hear(server)
        assert [found.port for found in scene.service.published()] == [port]


def test_doors_of_ours_and_ports_of_the_host_are_never_published(
    serve: Callable[..., Any], server: socket.socket, log: Any
) -> None:
    """They lead out again."""
    scene = serve(connect_host=(HostPort(server.getsockname()[1]),))
    for port in DOOR_PORTS:
        scene.service.listening("127.0.0.1", port, 1, "/bin/x")
    scene.hear(server)
    assert scene.service._publisher is not None
    assert scene.service._publisher.published() == []
    assert log.of("publish") == []


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1"])
def test_what_listens_elsewhere_is_not_published(serve: Callable[..., Any], log: Any, address: str) -> None:
    scene = serve()
    scene.service.listening(address, 3000, 1, "/bin/x")
    assert log.of("publish") == []


@pytest.mark.parametrize("strategy", ["rewire-port", "rewire-device"])
def test_the_kernel_engine_records_what_it_stands_for(
    serve: Callable[..., Any], server: socket.socket, log: Any, strategy: str
) -> None:
    scene = serve(strategy=strategy)
    port = scene.hear(server)
    scene.hear(server)
    (shown,) = scene.service.published()
    (record,) = log.of("rewrite")
    assert (record["from"], record["to"]) == (f"127.0.0.1:{port}", f"{shown.host_address}:{shown.host_port}")
    if strategy == "rewire-device":
        assert (shown.host_address, shown.host_port) == (scene.window.device, port)
    else:
        assert shown.host_port in scene.window


def test_isolation_rewrites_nothing(serve: Callable[..., Any], server: socket.socket, log: Any) -> None:
    scene = serve()
    scene.hear(server)
    assert log.of("rewrite") == []


def test_a_window_full_of_the_dead_has_room_for_the_living(serve: Callable[..., Any]) -> None:
    """A test suite that listens a hundred times on any port."""
    scene = serve(count=3)
    for _ in range(8):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = scene.hear(server)
            assert [found.port for found in scene.service.published()] == [port]


def test_the_limit_of_ports_counts_the_living(serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """With a device no port of the window is used up, so only this limit ends what a test suite leaves."""
    monkeypatch.setattr("netsandbox_portmap.publisher.MAX_PORTS", 2)
    scene = serve(strategy="rewire-device")
    for _ in range(4):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = scene.hear(server)
            assert scene.service._publisher.targets(port)
    assert scene.told() == ""


def test_a_hidden_listener_is_published_once_nothing_is_in_the_way(
    serve: Callable[..., Any], server: socket.socket, log: Any
) -> None:
    scene = serve(strategy="rewire-device")
    port = server.getsockname()[1]
    with socket.create_server((scene.window.device, port)):
        scene.hear(server)
        assert scene.service.published() == []
        assert scene.service.published() == []
    assert [found.host_port for found in scene.service.published()] == [port]
    assert [record["verdict"] for record in log.of("publish")] == ["deny", "allow"]
    assert [record["to"] for record in log.of("rewrite")] == [f"{scene.window.device}:{port}"]
    assert scene.told().count("cannot show it: it is taken") == 1
    assert scene.service._publisher.hidden == {}


def test_a_hidden_listener_that_is_gone_is_forgotten(serve: Callable[..., Any], log: Any) -> None:
    scene = serve(strategy="rewire-device")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_server((scene.window.device, port)):
            scene.hear(server)
    assert scene.service.published() == []
    assert scene.service._publisher.hidden == {}
    assert [record["verdict"] for record in log.of("publish")] == ["deny"]


def test_hidden_listeners_are_remembered_up_to_a_limit(
    serve: Callable[..., Any], server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netsandbox_portmap.publisher.MAX_HIDDEN", 1)
    scene = serve(strategy="rewire-device")
    with socket.create_server(("127.0.0.1", 0)) as other:
        both = [server.getsockname()[1], other.getsockname()[1]]
        with (
            socket.create_server((scene.window.device, both[0])),
            socket.create_server((scene.window.device, both[1])),
        ):
            scene.hear(server)
            scene.hear(other)
        assert [found.port for found in scene.service.published()] == both[:1]


def test_the_session_is_found_by_its_name(serve: Callable[..., Any], server: socket.socket) -> None:
    scene = serve()
    scene.hear(server)
    gateway = ("127.0.0.1", scene.reservation.settings.gateway_port)
    with socket.create_connection(gateway, timeout=PATIENCE) as client:
        client.sendall(f"GET / HTTP/1.1\r\nHost: {scene.reservation.name}.localhost\r\n\r\n".encode())
        scene.until(lambda: scene.service.flows == 1)
        peer, _ = server.accept()
        peer.close()
    with socket.create_connection(gateway, timeout=PATIENCE) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: attacker.example.com\r\n\r\n")
        client.setblocking(False)
        scene.until(lambda: _ready(client))
        assert client.recv(100).startswith(b"HTTP/1.1 421 ")


def test_a_last_port_that_was_given_away_is_published_like_any_other(
    serve: Callable[..., Any], server: socket.socket, free_range: Callable[[int], int]
) -> None:
    base = free_range(4)
    scene = serve(base=base, count=4, publish=((server.getsockname()[1], base + 3),))
    scene.hear(server)
    assert [found.host_port for found in scene.service.published()] == [base + 3]


def test_doors_of_the_host_are_served(serve: Callable[..., Any], server: socket.socket, log: Any) -> None:
    """The door has the number of the port that it leads to."""
    port = server.getsockname()[1]
    inside = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    inside.bind(("127.0.0.9", port))
    inside.listen()
    scene = serve({f"host-{port}": inside}, connect_host=(HostPort(port),))
    with socket.create_connection(("127.0.0.9", port), timeout=PATIENCE):
        scene.until(lambda: scene.service.flows == 1)
        server.accept()[0].close()
    assert [(record["door"], record["port"]) for record in log.of("egress")] == [("host", port)]


def test_closing_gives_every_port_back(serve: Callable[..., Any], server: socket.socket) -> None:
    scene = serve()
    scene.hear(server)
    (shown,) = scene.service.published()
    scene.service.close()
    for port in (shown.host_port, scene.reservation.settings.gateway_port):
        with socket.socket() as client:
            assert client.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


def test_a_question_that_we_fail_to_answer_is_a_refusal_on_record(
    serve: Callable[..., Any], log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """INV-1: whoever asks at the door gets EACCES, and the log says whose mistake it was."""
    door = _socket.socket()
    door.bind(("127.0.0.1", 0))
    door.listen(1)
    place = door.getsockname()
    scene = serve(doors={"requests": door}, strategy="rewire-port", engine="preload")
    monkeypatch.delattr(BindResponder, "_window")
    with socket.create_connection(place, PATIENCE) as client:
        client.sendall(REQUEST.pack(MAGIC, REQUEST_BIND, 3000, bytes([127, 0, 0, 1]), 6, scene.reservation.map.token))
        scene.until(lambda: bool(log.of("bind")))
        assert client.recv(64) == reply(errno.EACCES, 0)
    (record,) = log.of("bind")
    assert (record["verdict"], record["reason"]) == ("deny", "internal")
    assert "_window" in record["detail"]


def test_listeners_wait_until_the_port_for_names_is_decided(
    serve: Callable[..., Any], server: socket.socket, log: Any
) -> None:
    """Another program has the gateway's port: the record of the listener has the URL that holds."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        scene = serve(gateway_port=taken.getsockname()[1])
        scene.service.listening("127.0.0.1", server.getsockname()[1], 7, "/bin/server")
        assert scene.service.published() == []
        scene.until(scene.service.published)
    (publish,) = log.of("publish")
    assert publish["url"] == f"http://{scene.reservation.name}.localhost:{scene.reservation.by_name_port}/"
    assert scene.told() == ""  # only a terminal is told


def test_a_terminal_is_told_where_names_are_and_each_server(
    serve: Callable[..., Any], server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = announcing(serve, monkeypatch)
    port = scene.hear(server)
    url = f"http://{scene.reservation.name}.localhost:{scene.reservation.settings.gateway_port}/"
    (shown,) = scene.service._publisher.published()
    text = f"netsandbox: {url} is port {port} of this session, as is http://127.0.0.1:{shown.host_port}/\n"
    assert scene.told() == "", "it would be lost where the server clears the screen"
    assert wait_for_line(scene) == text
    scene.service._publisher.learn_tls(port, speaks=True)
    assert f"https{url[4:]} is port {port}" in wait_for_line(scene)


def test_a_server_that_is_gone_again_is_not_announced(
    serve: Callable[..., Any], server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = announcing(serve, monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as short:
        gone = scene.hear(short)
    assert scene.service.published() == []
    port = scene.hear(server)
    assert gone != port
    assert f" is port {port} of" in wait_for_line(scene)


def announcing(serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("netsandbox_portmap.localhost_service.ANNOUNCE_SECONDS", 0.05)
    monkeypatch.setattr("os.isatty", lambda descriptor: True)
    scene = serve(announce=True)
    monkeypatch.setattr("os.isatty", lambda descriptor: False)
    return scene


def wait_for_line(scene: Any) -> str:
    said: list[str] = []
    scene.until(lambda: said.append(scene.told()) or any(said))
    return "".join(said)
