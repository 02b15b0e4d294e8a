"""A port of the host is free when nobody has it, in any way that would keep us from it."""

from __future__ import annotations

import errno
import socket

import pytest
from netsandbox_portmap import host_ports
from netsandbox_portmap.host_ports import is_free, is_free_on_host

from tests.rig.ports import free_port

DEVICE = "127.91.8.1"


def bound(family, kind, host, *, port=None, listening=False, reuse=False):
    sock = socket.socket(family, kind)
    if reuse:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((host, free_port() if port is None else port))
    if listening:
        sock.listen()
    return sock


@pytest.mark.parametrize(
    ("family", "host"),
    [
        (socket.AF_INET, "127.0.0.1"),
        (socket.AF_INET, "0.0.0.0"),
        (socket.AF_INET6, "::1"),
        (socket.AF_INET6, "::"),
    ],
)
def test_a_port_that_somebody_holds_on_the_host_is_not_free(family, host):
    if family == socket.AF_INET6 and not has_ipv6():
        pytest.skip("this host has no ::1")
    with bound(family, socket.SOCK_STREAM, host) as sock:
        port = sock.getsockname()[1]
        assert not is_free_on_host(port)
    assert is_free_on_host(port)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_a_port_that_somebody_has_by_udp_can_be_published_but_is_given_to_nobody(speak, host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if family == socket.AF_INET6 and not has_ipv6():
        pytest.skip("this host has no ::1")
    port = speak.free_range(1)
    with bound(family, socket.SOCK_DGRAM, host, port=port):
        assert is_free(port, lingering=True)
        assert not is_free_on_host(port)
    assert is_free_on_host(port)


def test_a_port_that_is_listened_on_for_reuse_is_not_free():
    with bound(socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1", reuse=True) as sock:
        sock.listen()
        assert not is_free_on_host(sock.getsockname()[1])


def test_a_port_that_only_an_ended_connection_holds_is_free():
    with bound(socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1", reuse=True) as server:
        server.listen()
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            server.accept()[0].close()  # our side ends first, and waits for a minute in the kernel
            assert client.recv(1) == b""
    with pytest.raises(OSError, match="in use"), socket.socket() as plain:
        plain.bind(("127.0.0.1", port))
    assert is_free(port, lingering=True)
    assert not is_free(port, lingering=False)
    assert is_free_on_host(port)


def test_a_device_has_ports_of_its_own():
    with bound(socket.AF_INET, socket.SOCK_STREAM, DEVICE) as sock:
        port = sock.getsockname()[1]
        assert not is_free(port, DEVICE, lingering=True)
        assert is_free(port, lingering=True)
    with bound(socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1") as sock:
        assert is_free(sock.getsockname()[1], DEVICE, lingering=False)


def test_a_device_that_this_host_does_not_have_is_an_error():
    with pytest.raises(OSError, match="assign"):
        is_free(20000, "192.0.2.1", lingering=True)


def test_looking_for_a_free_port_holds_no_socket():
    with bound(socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1") as sock:
        port = sock.getsockname()[1]
    assert is_free_on_host(port)
    assert is_free_on_host(port)


def test_a_host_without_a_family_has_nothing_busy_there(monkeypatch):
    real = host_ports._socket.socket

    def no_ipv6(family, kind):
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "no such family")
        return real(family, kind)

    with bound(socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1") as sock:
        port = sock.getsockname()[1]
    monkeypatch.setattr(host_ports._socket, "socket", no_ipv6)
    assert is_free_on_host(port)


def test_a_look_that_fails_says_that_the_port_is_not_free(monkeypatch):
    """INV-1: without a descriptor to look with, nothing is known."""

    def none_left(family, kind):
        raise OSError(errno.EMFILE, "no descriptor left")

    monkeypatch.setattr(host_ports._socket, "socket", none_left)
    assert not is_free_on_host(20000)
    with pytest.raises(OSError, match="no descriptor left"):
        is_free(20000, lingering=True)


def has_ipv6():
    try:
        bound(socket.AF_INET6, socket.SOCK_STREAM, "::1").close()
    except OSError:
        return False
    return True
