"""Standard descriptors that could be aimed at the host's network are refused before anything is started."""

from __future__ import annotations

import os
import socket

import pytest

from netsandbox.errors import HostError
from netsandbox.runtime.inherited import check_stdio


@pytest.fixture
def null():
    descriptor = os.open(os.devnull, os.O_RDWR)
    yield descriptor
    os.close(descriptor)


def test_files_pipes_and_connected_unix_streams_are_passed_on(null):
    reading, writing = os.pipe()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        check_stdio((reading, writing, null))
        check_stdio((ours.fileno(), ours.fileno(), null))
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("at", range(3))
def test_a_file_that_the_session_protects_is_refused_and_another_is_not(tmp_path, null, at):
    kept, other, link = (tmp_path / name for name in ("kept", "other", "link"))
    kept.touch()
    other.touch()
    link.symlink_to(kept)
    for path, named, refused in ((kept, kept, True), (kept, link, True), (other, kept, False), (kept, None, False)):
        with path.open() as file:
            given = tuple(file.fileno() if number == at else null for number in range(3))
            wanted = (str(tmp_path / "missing"), str(tmp_path), os.devnull, named and str(named))
            if refused:
                with pytest.raises(HostError, match="the command could write through it"):
                    check_stdio(given, wanted)
            else:
                check_stdio(given, wanted)


@pytest.mark.attack(132)
@pytest.mark.parametrize(
    ("family", "kind"),
    [
        (socket.AF_INET, socket.SOCK_STREAM),
        (socket.AF_INET, socket.SOCK_DGRAM),
        (socket.AF_INET6, socket.SOCK_STREAM),
        (socket.AF_UNIX, socket.SOCK_STREAM),
        (socket.AF_UNIX, socket.SOCK_DGRAM),
    ],
)
def test_a_socket_that_could_be_aimed_again_is_refused(family, kind, null):
    with socket.socket(family, kind) as sock, pytest.raises(HostError, match="standard output is a socket"):
        check_stdio((null, sock.fileno(), null))


def test_a_unix_datagram_pair_is_refused(null):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs, pytest.raises(HostError, match="standard input"):
        check_stdio((ours.fileno(), null, null))


def test_a_connected_internet_socket_is_refused_too(null):
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        pytest.raises(HostError),
    ):
        check_stdio((null, null, client.fileno()))


def test_a_closed_descriptor_is_refused(null):
    with pytest.raises(HostError, match="standard error is not open"):
        check_stdio((null, null, 1 << 20))


def test_a_directory_is_refused(null, tmp_path):
    descriptor = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(HostError, match="is a directory"):
        check_stdio((descriptor, null, null))
    os.close(descriptor)
