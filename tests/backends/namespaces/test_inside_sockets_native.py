"""Sockets that the native helper makes inside on request, and what else it is told while the command runs."""

from __future__ import annotations

import _socket
import errno
import fcntl
import os
import signal
import socket

import pytest
from netsandbox_portmap.localhost_settings import MAX_HOST_PORTS

from netsandbox.backends.namespaces import launch, plan
from netsandbox.backends.namespaces.inside_sockets import InsideSockets
from tests.rig.planned import Start

pytestmark = pytest.mark.usefixtures("user_namespaces")
SIOCGSKNS = 0x894C


def made_inside(helper: launch.Helper, family: int) -> _socket.socket:
    helper.ask_socket(family)
    message = helper.receive()
    assert (message.kind, len(message.descriptors)) == ("N", 1)
    return _socket.socket(fileno=message.descriptors[0])


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_socket_on_request_lives_in_the_sessions_network(standing: Start, family: int) -> None:
    helper = standing("sleep", "60")
    sock = made_inside(helper, family)
    try:
        assert (sock.family, sock.type & 0xF) == (family, socket.SOCK_STREAM)
        assert not os.get_blocking(sock.fileno())
        assert fcntl.fcntl(sock.fileno(), fcntl.F_GETFD) & fcntl.FD_CLOEXEC
        network = fcntl.ioctl(sock.fileno(), SIOCGSKNS)
        assert os.fstat(network).st_ino != os.stat("/proc/self/ns/net").st_ino  # which it is, the next test shows
        os.close(network)
    finally:
        sock.close()


def test_a_socket_on_request_reaches_what_listens_inside_and_not_the_host(
    standing: Start,
) -> None:
    helper = standing("sleep", "60", extra=plan.localhost_doors((3000,), requests=False))
    with socket.create_server(("127.0.0.1", 0)) as host:
        found = []
        for port in (3000, host.getsockname()[1]):
            sock = made_inside(helper, socket.AF_INET)
            sock.settimeout(10)
            found.append(sock.connect_ex(("127.0.0.1", port)))
            sock.close()
    assert found == [0, errno.ECONNREFUSED]


def test_a_socket_that_cannot_be_made_is_an_error_number(standing: Start) -> None:
    """And PID 1 goes on."""
    helper = standing("sleep", "60")
    for family in (0x7FFFFFFF, 45, socket.AF_PACKET):
        helper.ask_socket(family)
        message = helper.receive()
        assert (message.kind, message.descriptors) == ("N", [])
        assert message.number in (errno.EAFNOSUPPORT, errno.EPERM, errno.EINVAL, errno.ESOCKTNOSUPPORT)
    made_inside(helper, socket.AF_INET).close()


def test_hundreds_of_sockets_are_made_while_nobody_reads(standing: Start) -> None:
    """A burst of connections must not make both ends of the channel wait for each other."""
    helper = standing("sleep", "60")
    sockets = InsideSockets(helper)
    given: list[_socket.socket | None] = []
    for _ in range(600):
        sockets.take(socket.AF_INET, given.append)
    while len(given) < 600:
        sockets.arrived(helper.receive())
    sockets.close()
    assert None not in given
    for sock in given:
        assert sock is not None
        sock.close()


@pytest.mark.parametrize("wish", [b"", b"N", b"N\2\0\0", b"?\2\0\0\0", b"N\2\0\0\0\0", b"G", b"N" * 64])
def test_a_wish_that_is_none_ends_the_session(standing: Start, wish: bytes) -> None:
    """INV-1: nothing is guessed from a broken record. One that is too long is cut by the kernel, and is no harm."""
    helper = standing("sleep", "60")
    helper.channel.send(wish)
    if len(wish) > 5:
        for descriptor in helper.receive().descriptors:
            os.close(descriptor)
        return
    assert helper.receive().kind == ""


def test_signals_and_wishes_are_told_apart(standing: Start) -> None:
    helper = standing("sleep", "60")
    made_inside(helper, socket.AF_INET).close()
    helper.signal(signal.SIGTERM)
    message = helper.receive()
    assert (message.kind, os.WTERMSIG(message.number)) == ("S", signal.SIGTERM)


def test_as_many_doors_as_the_settings_allow_all_arrive_in_order(standing: Start) -> None:
    extra = plan.localhost_doors(range(2000, 2000 + MAX_HOST_PORTS), requests=True)
    helper = standing("sleep", "60", extra=extra)
    for port in (2000, 2000 + MAX_HOST_PORTS - 1, 1011):
        sock = made_inside(helper, socket.AF_INET)
        sock.settimeout(10)
        assert sock.connect_ex(("127.0.0.1", port)) == 0
        sock.close()
