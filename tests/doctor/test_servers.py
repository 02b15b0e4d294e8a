"""A canary that cannot hear would make every probe succeed."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from netsandbox.doctor.inside import Prevented
from netsandbox.doctor.inside.network import query
from netsandbox.doctor.scene import make_directory
from netsandbox.doctor.servers import Canary, NameServer, ProbeResponder


def test_connections_are_counted_even_when_closed_before_we_look():
    canary = Canary(socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1")
    assert canary.received() == 0
    for _ in range(3):
        socket.create_connection((canary.address, canary.port)).close()
    assert canary.received() == 3
    assert canary.received() == 3
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
    assert canary.received() == 2
    canary.close()


@pytest.mark.parametrize("abstract", [True, False])
def test_unix_sockets_are_counted(tmp_path: Path, abstract):
    path = f"\0netsandbox-test-{os.getpid()}" if abstract else str(tmp_path / "s")
    canary = Canary(socket.AF_UNIX, socket.SOCK_STREAM, path)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
    assert canary.received() == 1
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


@pytest.fixture
def server():
    made, attendant = NameServer(["known.test"]), ProbeResponder()
    attendant.watch(made.datagrams, made.serve_datagram)
    attendant.watch(made.stream, made.serve_stream)
    attendant.start()
    yield made
    attendant.close()
    made.close()


@pytest.mark.parametrize("tcp", [False, True])
def test_a_known_name_is_answered_and_counted(server, tcp):
    assert query(server.address, server.port, "KNOWN.test", tcp=tcp) == "1 records"
    assert (server.received("known.test"), server.total) == (1, 1)


@pytest.mark.parametrize(
    ("name", "kind", "said"), [("other.test", 1, "NXDOMAIN"), ("known.test", 16, "without a record")]
)
def test_what_has_no_answer_is_counted_all_the_same(server, name, kind, said):
    with pytest.raises(Prevented, match=said):
        query(server.address, server.port, name, kind)
    assert server.queries[name, kind] == 1


def test_bytes_that_are_no_question_count_too(server):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"secret", (server.address, server.port))
    with pytest.raises(Prevented):
        query(server.address, server.port, "other.test")
    assert server.total == 2
