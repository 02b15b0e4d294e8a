"""A listener is published while it listens, at the same port when it returns, and within bounds."""

from __future__ import annotations

from typing import Any

import pytest
from netsandbox_portmap import publisher as module

from tests.rig.publishing import COUNT, found, refused, talks


def test_the_same_listener_twice_is_one_with_the_newer_process(rig: Any, make: Any) -> None:
    server = rig.server()
    publisher, _ = make()
    first = found(rig, publisher, "127.0.0.1", server.port)
    rig.run(lambda: publisher.listening("127.0.0.1", server.port, requested=server.port, pid=43, exe="/usr/bin/deno"))
    (second,) = rig.run(publisher.published)
    assert (second.pid, second.exe, second.since) == (43, "/usr/bin/deno", first.since)
    assert len(rig.notes) == 1


def test_what_stops_listening_is_withdrawn_and_comes_back_at_its_place(rig: Any, make: Any) -> None:
    server = rig.server()
    publisher, _ = make()
    one = found(rig, publisher, "127.0.0.1", server.port)
    client = rig.client(one.host_port)
    client.sendall(b"still")
    assert client.recv(5) == b"still"
    rig.run(lambda: publisher.check(lambda: {("127.0.0.1", server.port)}))
    assert len(rig.run(publisher.published)) == 1
    rig.run(lambda: publisher.check(set))
    assert rig.run(publisher.published) == []
    assert refused("127.0.0.1", one.host_port)
    client.sendall(b"there")  # its connections continue
    assert client.recv(5) == b"there"
    assert found(rig, publisher, "127.0.0.1", server.port).host_port == one.host_port
    assert talks(rig, "127.0.0.1", one.host_port)
    assert len(rig.notes) == 1


def test_a_port_stays_published_while_one_of_its_listeners_is_there(rig: Any, make: Any, speak: Any) -> None:
    port = speak.free_range(1)
    first, _second = rig.server(address="127.0.0.1", port=port), rig.server(address="::1", port=port)
    publisher, _ = make()
    found(rig, publisher, "127.0.0.1", port)
    one = found(rig, publisher, "::1", port)
    first.close()
    assert talks(rig, "127.0.0.1", one.host_port)  # it was refused by IPv4 and tried IPv6
    rig.run(lambda: publisher.check(lambda: {("::1", port)}))
    (one,) = rig.run(publisher.published)
    assert one.inside_address == "::1"
    assert talks(rig, "127.0.0.1", one.host_port)


def test_a_refusal_inside_is_told(rig: Any, make: Any, speak: Any) -> None:
    server = rig.server()
    publisher, _ = make()
    told: list[int] = []
    publisher.on_refused = lambda port: (publisher.check(set), told.append(port))[0]
    one = found(rig, publisher, "127.0.0.1", server.port)
    server.close()
    with pytest.raises(ConnectionResetError):
        rig.client(one.host_port).recv(1)
    speak.wait_for(lambda: told == [server.port])
    assert refused("127.0.0.1", one.host_port)


def test_the_name_stands_for_the_oldest_that_lives(rig: Any, make: Any) -> None:
    first, second = rig.server(), rig.server()
    publisher, place = make()
    assert rig.run(lambda: publisher.targets(None)) == []
    for server in (first, second):
        found(rig, publisher, "127.0.0.1", server.port)
    end = f"shop.localhost:{place.base + COUNT - 1}/"
    assert [one.url for one in rig.run(publisher.published)] == [f"http://{end}", f"http://{second.port}.{end}"]
    rig.run(lambda: publisher.check(lambda: {("127.0.0.1", second.port)}))
    assert [(one.port, one.url) for one in rig.run(publisher.published)] == [(second.port, f"http://{end}")]
    assert rig.run(lambda: publisher.targets(None)) == [("127.0.0.1", second.port)]
    found(rig, publisher, "127.0.0.1", first.port)  # a dev server that was restarted
    assert rig.run(publisher.published)[0].port == first.port
    assert rig.run(lambda: publisher.targets(None)) == [("127.0.0.1", first.port)]
    assert rig.run(lambda: publisher.targets(7)) == []


def test_a_program_on_thousands_of_addresses_is_one_publication(rig: Any, make: Any) -> None:
    server = rig.server()
    publisher, _ = make()
    for number in range(1, 2000):
        address = f"127.0.{number >> 8}.{number & 255}"
        rig.run(lambda at=address: publisher.listening(at, server.port, requested=server.port, pid=1, exe="x"))
    assert len(rig.run(publisher.published)) == 1
    assert len(rig.run(lambda: publisher.targets(server.port))) == module.MAX_TARGETS


def test_the_record_says_where(rig: Any, make: Any) -> None:
    server = rig.server()
    publisher, _ = make()
    one = found(rig, publisher, "0.0.0.0", server.port)
    assert rig.notes == [
        {
            "event": "publish",
            "verdict": "allow",
            "reason": "loopback",
            "port": server.port,
            "address": "0.0.0.0",
            "host_address": "127.0.0.1",
            "host_port": one.host_port,
            "url": one.url,
            "pid": 42,
            "exe": "/usr/bin/node",
        }
    ]


def test_close_gives_everything_back(rig: Any, make: Any, speak: Any) -> None:
    server = rig.server()
    publisher, _ = make()
    one = found(rig, publisher, "127.0.0.1", server.port)
    client = rig.client(one.host_port)
    client.sendall(b"x")
    assert client.recv(1) == b"x"
    rig.run(publisher.close)
    assert speak.read_all(client) == b""
    assert refused("127.0.0.1", one.host_port)
    assert publisher.connections == 0


def test_past_the_limit_of_connections_newcomers_see_a_reset(
    rig: Any, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_CONNECTIONS", 1)
    server = rig.server()
    publisher, _ = make()
    one = found(rig, publisher, "127.0.0.1", server.port)
    assert talks(rig, "127.0.0.1", one.host_port)
    with pytest.raises(ConnectionResetError):
        rig.client(one.host_port).recv(1)


def test_past_the_limit_of_ports_it_is_refused(rig: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PORTS", 1)
    publisher, _ = make()
    assert found(rig, publisher, "127.0.0.1", rig.server().port) is not None
    assert found(rig, publisher, "127.0.0.1", rig.server().port) is None
    assert [record["reason"] for record in rig.notes if record["verdict"] == "deny"] == ["limit"]
