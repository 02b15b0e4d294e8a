"""The user of a connection's other end, by the kernel's word."""

from __future__ import annotations

import os
import socket

import pytest
from netsandbox_portmap.peer_user import peer_user

OTHER = 65534


@pytest.fixture(params=["127.0.0.1", "::1"])
def listener(request):
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.create_server((request.param, 0), family=family) as made:
        yield made


def test_our_own_client_is_ours(listener):
    with socket.create_connection(listener.getsockname()[:2]), listener.accept()[0] as ours:
        assert peer_user(ours) == os.geteuid()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
@pytest.mark.attack(304)
def test_a_client_of_another_user_is_that_users(listener):
    os.seteuid(OTHER)
    client = socket.socket(listener.family)
    os.seteuid(0)
    with client:
        client.connect(listener.getsockname()[:2])
        with listener.accept()[0] as ours:
            assert peer_user(ours) == OTHER


def test_who_has_left_is_unknown(listener):
    client = socket.create_connection(listener.getsockname()[:2])
    with listener.accept()[0] as ours:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        assert peer_user(ours) is None
