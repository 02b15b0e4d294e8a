"""Ports that were asked for by number are held, or the user hears why not."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from netsandbox_portmap import acceptor
from netsandbox_portmap.fixed_ports import reserve, split_faces
from netsandbox_portmap.published import PublishError, Wanted

from tests.rig.publishing import forbid, found, refused, talks


class FakeWindow:
    def __init__(self, device: str = "127.121.24.1") -> None:
        self.device = device


@pytest.mark.parametrize("strategy", ["isolate", "fail", "rewire-port"])
def test_both_addresses_of_localhost_are_held(speak: Any, strategy: str) -> None:
    port = speak.free_range(1)
    held = reserve({3000: port}, strategy, FakeWindow(), device_given=False)
    assert [sock.getsockname()[:2] for sock in held[3000]] == [("127.0.0.1", port), ("::1", port)]
    for sock in held[3000]:
        sock.close()


def test_nothing_stays_held_after_an_error(speak: Any) -> None:
    first = speak.free_range(2)
    second = first + 1
    held = reserve({1: second}, "isolate", FakeWindow(), device_given=False)
    with pytest.raises(PublishError, match=f"--publish 2:{second}: .* or write --publish 2 to get a free one"):
        reserve({3: first, 2: second}, "isolate", FakeWindow(), device_given=False)
    assert speak.is_free(first)
    for sock in held[1]:
        sock.close()


@pytest.mark.parametrize("device", ["127.121.24.1", "127.0.0.1"])
def test_the_device_is_optional_beside_localhost_and_never_counted_twice(device: str) -> None:
    group, extra = split_faces("isolate", 3000, FakeWindow(device), device_given=True, host_port=3000)
    assert group == [("127.0.0.1", 3000), ("::1", 3000)]
    assert extra == ([] if device == "127.0.0.1" else [(device, 3000)])


def test_the_device_is_needed_where_it_is_the_only_place() -> None:
    assert split_faces("rewire-device", 3000, FakeWindow(), device_given=False, host_port=None) == (
        [("127.121.24.1", 3000)],
        [],
    )


def test_a_fixed_port_is_held_before_anything_listens(rig: Any, make: Any, speak: Any) -> None:
    server = rig.server()
    host_port = speak.free_range(1)
    publisher, place = make(wanted=Wanted(automatic=False, fixed={server.port: host_port}), device_given=True)
    assert refused("127.0.0.1", host_port)
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="in use"):
            thief.bind(("127.0.0.1", host_port))
    one = found(rig, publisher, "127.0.0.1", server.port)
    assert (one.host_address, one.host_port) == ("127.0.0.1", host_port)
    assert talks(rig, "127.0.0.1", host_port)
    assert talks(rig, "::1", host_port)
    assert talks(rig, place.device, server.port)
    rig.run(lambda: publisher.check(set))
    assert refused("127.0.0.1", host_port)
    assert not speak.is_free(host_port)
    assert found(rig, publisher, "127.0.0.1", server.port).host_port == host_port


@pytest.mark.parametrize("face", ["127.0.0.1", "::1"])
def test_a_fixed_port_that_is_taken_is_an_error_that_says_what_to_do(
    rig: Any, make: Any, speak: Any, face: str
) -> None:
    taken = rig.server(address=face)
    free = speak.free_range(1)
    with pytest.raises(PublishError, match=rf"--publish 3000:{taken.port}: .*; choose another"):
        make(wanted=Wanted(automatic=False, fixed={3001: free, 3000: taken.port}))
    assert speak.is_free(free)


def test_a_privileged_port_says_so(rig: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor, "bind", forbid(acceptor.bind, lambda address, port: port < 1024))
    with pytest.raises(PublishError, match="choose one from 1024 on"):
        make(wanted=Wanted(automatic=False, fixed={80: 80}))


def test_a_fixed_port_may_be_the_port_itself(rig: Any, make: Any, speak: Any) -> None:
    port = speak.free_range(1)
    rig.server(address="127.0.0.9", port=port)
    publisher, place = make(wanted=Wanted(automatic=True, fixed={port: port}), device_given=True)
    one = found(rig, publisher, "127.0.0.9", port)
    assert (one.host_port, one.device and one.device[1]) == (port, port)
    assert talks(rig, place.device, port)
