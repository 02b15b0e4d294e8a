"""Standard descriptors that could be aimed at the host's network are refused before anything is started."""

from __future__ import annotations

import os
import socket

import pytest

from netsandbox.errors import HostError
from netsandbox.runtime import inherited
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
    kept, other, link, folder = (tmp_path / name for name in ("kept", "other", "link", "folder"))
    folder.mkdir()
    kept.touch()
    other.touch()
    link.symlink_to(kept)
    for path, named, refused in ((kept, kept, True), (kept, link, True), (other, kept, False), (kept, None, False)):
        with path.open() as file:
            given = tuple(file.fileno() if number == at else null for number in range(3))
            wanted = (str(tmp_path / "missing"), str(folder), os.devnull, named and str(named))
            if refused:
                with pytest.raises(HostError, match="the command could write through it"):
                    check_stdio(given, wanted)
            else:
                check_stdio(given, wanted)


@pytest.fixture
def homes(tmp_path, monkeypatch):
    """A state home with the log of an earlier session, and a configuration home."""
    for variable, name in (("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config")):
        monkeypatch.setenv(variable, str(tmp_path / name))
        (tmp_path / name / "netsandbox" / "sessions" / "one").mkdir(parents=True)
    return tmp_path


@pytest.mark.attack(301)
@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("home", ["state", "config"])
def test_a_file_below_our_homes_is_refused_by_every_name_and_one_beside_them_is_not(homes, null, at, home):
    log = homes / home / "netsandbox" / "sessions" / "one" / "audit.jsonl"
    beside, second = homes / home / "netsandbox.jsonl", homes / "second.jsonl"
    for path in (log, beside):
        path.touch()
    link = homes / "link"
    link.symlink_to(homes / home)

    def check(path, flags=os.O_RDONLY):
        descriptor = os.open(path, flags)
        try:
            check_stdio(tuple(descriptor if number == at else null for number in range(3)))
        finally:
            os.close(descriptor)

    check(beside)
    for path in (log, link / "netsandbox" / "sessions" / "one" / "audit.jsonl"):
        with pytest.raises(HostError, match="the command could write through it"):
            check(path)
    os.link(beside, homes / "third.jsonl")
    check(beside)  # a second name that is not below our homes
    os.link(log, second)
    with pytest.raises(HostError, match="the command could write through it"):
        check(second)


@pytest.mark.attack(301)
def test_a_file_with_two_names_is_refused_where_our_folders_are_too_large_to_search(homes, null, monkeypatch):
    monkeypatch.setattr(inherited, "MAX_ENTRIES", 1)
    one = homes / "one"
    one.touch()
    with one.open() as file:
        check_stdio((file.fileno(), null, null))
        os.link(one, homes / "two")
        with pytest.raises(HostError, match="the command could write through it"):
            check_stdio((file.fileno(), null, null))


def test_a_file_without_a_name_is_nobodys(homes, null):
    """Shells put a here-document into one."""
    path = homes / "state" / "netsandbox" / "here"
    path.touch()
    with path.open() as file:
        path.unlink()
        check_stdio((file.fileno(), null, null))


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
