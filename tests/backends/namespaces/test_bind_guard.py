"""The guard on bind and listen, at work on this process's own sockets: the window holds whatever asks (INV-7)."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable

import pytest
from netsandbox_portmap.bind_rule import BindRule
from netsandbox_portmap.window import Window

from tests.rig.guarded import ANY, COUNT, DEVICE, V4, V6, Scene, port_of, v4, v6


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
@pytest.mark.parametrize(
    ("family", "address", "meant"),
    [
        (V4, "127.0.0.1", "127.0.0.1"),
        (V4, ANY, ANY),
        (V6, "::1", "127.0.0.1"),
        (V6, "::", ANY),
        (V6, "::ffff:127.0.0.1", "127.0.0.1"),
    ],
)
def test_a_port_of_the_window_is_bound_and_recorded(
    guarded: Scene, window: Window, kind: int, family: int, address: str, meant: str
) -> None:
    sock = guarded.socket(family, kind)
    assert guarded.bind(sock, (v4 if family == V4 else v6)(address, window.base + 1)) == 0
    assert sock.getsockname()[:2] == (address, window.base + 1)
    (record,) = guarded.log.records
    assert (record["event"], record["verdict"], record["reason"]) == ("bind", "allow", "loopback")
    assert (record["address"], record["port"]) == (meant, window.base + 1)
    assert record["protocol"] == {1: "tcp", 2: "udp"}[kind]
    assert (record["pid"], record["exe"]) == (os.getpid(), "/bin/probe")
    assert guarded.told == []


def test_ports_outside_are_refused_told_and_recorded_and_not_bound(guarded: Scene, window: Window) -> None:
    for port in (window.base - 1, window.base + COUNT, 80, 1, 65535):
        sock = guarded.socket()
        assert guarded.bind(sock, v4("127.0.0.1", port)) == errno.EACCES
        assert port_of(sock) == 0
        assert guarded.told[-1] == ("127.0.0.1", port)
        record = guarded.log.records[-1]
        assert (record["event"], record["verdict"], record["reason"]) == ("bind", "deny", "outside-window")
        assert (record["address"], record["port"], record["call"]) == ("127.0.0.1", port, "bind")


@pytest.mark.parametrize(
    ("family", "address"),
    [(V4, "127.0.0.2"), (V4, DEVICE), (V4, "192.0.2.1"), (V6, "::2"), (V6, "::ffff:127.0.0.2"), (V6, "::127.0.0.1")],
)
def test_other_devices_are_refused(guarded: Scene, window: Window, family: int, address: str) -> None:
    sock = guarded.socket(family)
    assert guarded.bind(sock, (v4 if family == V4 else v6)(address, window.base)) == errno.EADDRNOTAVAIL
    assert port_of(sock) == 0
    assert [record["reason"] for record in guarded.log.records] == ["wrong-device"]
    assert len(guarded.told) == 1


def test_a_session_with_a_device_keeps_to_it(make: Callable[[BindRule], Scene], window: Window) -> None:
    scene = make(BindRule(window, (DEVICE,)))
    for address in ("127.0.0.1", ANY):
        assert scene.bind(scene.socket(), v4(address, window.base)) == errno.EADDRNOTAVAIL
    sock = scene.socket()
    assert scene.bind(sock, v4(DEVICE, window.base)) == 0
    assert sock.getsockname() == (DEVICE, window.base)


def test_any_port_is_one_of_the_window_until_there_is_none(guarded: Scene, window: Window) -> None:
    """Never the kernel's choice."""
    socks = [guarded.socket() for _ in range(COUNT)]
    assert [guarded.bind(sock, v4("127.0.0.1", 0)) for sock in socks] == [0] * COUNT
    assert sorted(port_of(sock) for sock in socks) == list(window.ports)
    late = guarded.socket()
    assert guarded.bind(late, v4("127.0.0.1", 0)) == errno.EADDRINUSE
    assert port_of(late) == 0
    socks[2].close()
    assert guarded.bind(late, v4("127.0.0.1", 0)) == 0
    assert port_of(late) in window


def test_any_port_ends_the_search_at_an_error_of_another_kind(guarded: Scene, window: Window) -> None:
    sock = guarded.socket()
    assert guarded.bind(sock, v4("127.0.0.1", window.base)) == 0
    assert guarded.bind(sock, v4("127.0.0.1", 0)) == errno.EINVAL  # bound already, as the kernel says
    assert port_of(sock) == window.base


def test_every_port_of_a_device_but_those_that_need_a_capability(make: Callable[[BindRule], Scene]) -> None:
    """rewire-device: we act with more rights than the caller, who may not bind 80."""
    scene = make(BindRule(None, (DEVICE,)))
    for port in (1, 80, 1023):
        assert scene.bind(scene.socket(), v4(DEVICE, port)) == errno.EACCES
    assert scene.told == [(DEVICE, port) for port in (1, 80, 1023)]
    denied = [(record["verdict"], record["reason"], record["port"]) for record in scene.records("bind")]
    assert denied == [("deny", "outside-window", port) for port in (1, 80, 1023)]
    sock = scene.socket()
    assert scene.bind(sock, v4(DEVICE, 0)) == 0
    assert port_of(sock) >= 1024


@pytest.mark.parametrize("what", ["window", "any", "listen-unbound"])
def test_no_record_no_port(guarded: Scene, window: Window, what: str) -> None:
    """INV-5: with a log that cannot be written nothing is bound, whichever way."""
    guarded.log.failed = "disk full"
    sock = guarded.socket()
    answer = {
        "window": lambda: guarded.bind(sock, v4("127.0.0.1", window.base)),
        "any": lambda: guarded.bind(sock, v4("127.0.0.1", 0)),
        "listen-unbound": lambda: guarded.listen(sock),
    }[what]()
    assert answer == errno.EACCES
    assert port_of(sock) == 0
    assert guarded.heard == []


def test_no_record_no_port_for_a_repeat_either(guarded: Scene, window: Window) -> None:
    first = guarded.socket()
    assert guarded.bind(first, v4("127.0.0.1", window.base)) == 0
    first.close()
    guarded.log.failed = "disk full"
    assert guarded.bind(guarded.socket(), v4("127.0.0.1", window.base)) == errno.EACCES


def test_repeats_are_folded(guarded: Scene, window: Window) -> None:
    for address in (v4("127.0.0.1", window.base), v4("127.0.0.1", 9)):
        for _ in range(20):
            with socket.socket() as sock:
                guarded.bind(sock, address)
    assert [record["count"] for record in guarded.log.records] == [1, 1]
    guarded.trapped.repeats.flush()
    assert [record["count"] for record in guarded.log.records] == [1, 1, 19, 19]


def test_what_is_no_socket_or_no_descriptor_hears_what_the_kernel_says(guarded: Scene) -> None:
    reading, writing = os.pipe()
    assert guarded.listen(reading) == errno.ENOTSOCK
    os.close(reading)
    os.close(writing)
    assert guarded.listen(0x7FFFFFFF) == errno.EBADF
    assert guarded.log.records == []


@pytest.mark.parametrize("length", [*range(16), 129, 1 << 31])
def test_lengths_that_the_kernel_refuses_bind_nothing(guarded: Scene, window: Window, length: int) -> None:
    sock = guarded.socket()
    guarded.broker.serve(guarded.trapped.call("bind", sock, v4("127.0.0.1", window.base), length))
    assert guarded.listener.answers == [errno.EINVAL]
    assert port_of(sock) == 0


def test_memory_that_cannot_be_read_is_refused_and_recorded(guarded: Scene) -> None:
    sock = guarded.socket()
    call = guarded.trapped.call("bind", sock, bytes(16))
    for pointer in (0, 1, 2**47, 2**64 - 8):
        guarded.listener.answers.clear()
        call.arguments[1] = pointer
        guarded.broker.serve(call)
        assert guarded.listener.answers == [errno.EFAULT]
    assert guarded.log.records[0]["reason"] == "malformed"


def test_a_bound_socket_whose_caller_did_not_hear_of_it_is_told_when_it_asks_again(
    guarded: Scene, window: Window
) -> None:
    """120: the restarted call must not fail with EINVAL, and only once."""
    sock = guarded.socket()
    guarded.listener.heard = False
    assert guarded.bind(sock, v4("127.0.0.1", window.base)) == 0
    guarded.listener.heard = True
    assert guarded.bind(sock, v4("127.0.0.1", window.base)) == 0
    assert guarded.bind(sock, v4("127.0.0.1", window.base)) == errno.EINVAL


def test_any_port_that_the_caller_did_not_hear_of_is_told_too(guarded: Scene, window: Window) -> None:
    sock = guarded.socket()
    guarded.listener.heard = False
    assert guarded.bind(sock, v4("127.0.0.1", 0)) == 0
    guarded.listener.heard = True
    assert guarded.bind(sock, v4("127.0.0.1", 0)) == 0
    assert port_of(sock) in window
