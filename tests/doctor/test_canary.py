"""A canary that cannot hear would make every probe succeed."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from netsandbox.doctor.canary import Canary
from netsandbox.doctor.scene import make_directory


def test_connections_are_counted_even_when_closed_before_we_look():
    canary = Canary(socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1")
    assert canary.heard() == 0
    for _ in range(3):
        socket.create_connection((canary.address, canary.port)).close()
    assert canary.heard() == 3
    assert canary.heard() == 3
    canary.close()


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_datagrams_are_counted(family, address):
    try:
        canary = Canary(family, socket.SOCK_DGRAM, address)
    except OSError as error:
        pytest.skip(f"{address} is not there: {error}")
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", (address, canary.port))
        sender.sendto(b"", (address, canary.port))
    assert canary.heard() == 2
    canary.close()


@pytest.mark.parametrize("abstract", [True, False])
def test_unix_sockets_are_counted(tmp_path: Path, abstract):
    path = f"\0netsandbox-test-{os.getpid()}" if abstract else str(tmp_path / "s")
    canary = Canary(socket.AF_UNIX, socket.SOCK_STREAM, path)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
    assert canary.heard() == 1
    canary.close()


def test_an_address_that_is_not_ours_is_an_error_and_nothing_stays_open():
    with pytest.raises(OSError, match="assign"):
        Canary(socket.AF_INET, socket.SOCK_STREAM, "203.0.113.1")


def test_a_directory_too_deep_for_unix_sockets_is_made_elsewhere(tmp_path: Path):
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    made = make_directory(str(deep))
    assert not made.startswith(str(deep))
    os.rmdir(made)
