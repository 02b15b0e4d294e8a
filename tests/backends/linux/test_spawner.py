"""A request for a second command reaches the spawner, or its sender hears why not."""

from __future__ import annotations

import contextlib
import os
import socket

import pytest

from netsandbox.backends.linux.spawner import pass_request
from netsandbox.errors import HostError


def test_a_request_goes_with_its_descriptors() -> None:
    ours, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, far:
        pass_request(ours, b"request", [0, 1, 2])
        data, passed, _, _ = socket.recv_fds(far, 100, 8)
    assert (data, len(passed)) == (b"request", 3)
    for descriptor in passed:
        os.close(descriptor)


def test_a_spawner_that_is_missing_busy_or_gone_is_named() -> None:
    with pytest.raises(HostError, match="has no process that starts commands"):
        pass_request(None, b"request", [])
    ours, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    with ours:
        with far, contextlib.suppress(BlockingIOError):
            while True:
                ours.send(bytes(4096))
        with pytest.raises(HostError, match="is gone"):
            pass_request(ours, b"request", [])
    ours, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    with ours, far:
        with contextlib.suppress(BlockingIOError):
            while True:
                ours.send(bytes(4096))
        with pytest.raises(HostError, match="does not answer"):
            pass_request(ours, bytes(4096), [])
