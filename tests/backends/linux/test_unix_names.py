"""The name that a server was bound under, against the kernel: from its list, and by asking."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.linux import unix_names
from netsandbox.backends.linux.unix_names import Server, server_at

Listen = Callable[..., socket.socket]
ELSEWHERE = """
import socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
print("listens", flush=True)
sys.stdin.read()
"""


def at(path: Path) -> Server | None:
    descriptor = os.open(path, os.O_PATH)
    try:
        return server_at(descriptor)
    finally:
        os.close(descriptor)


@pytest.fixture
def unlisted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on btrfs, where the list has other devices than stat(2)."""
    listed = unix_names._listeners
    monkeypatch.setattr(unix_names, "_listeners", lambda: [(name, b"") for name, _ in listed()])


def test_the_kernel_names_the_listener(listen: Listen, short_tmp: Path) -> None:
    listen(short_tmp / "a.sock")
    info = (short_tmp / "a.sock").stat()
    assert unix_names.bound_names(info.st_dev, info.st_ino) == {str(short_tmp / "a.sock")}
    assert unix_names.bound_names(info.st_dev, info.st_ino + 100000) == set()


def test_a_listed_server_is_not_disturbed(listen: Listen, short_tmp: Path) -> None:
    server = listen(short_tmp / "a.sock")
    (short_tmp / "a.sock").rename(short_tmp / "b.sock")
    assert at(short_tmp / "b.sock") == Server(frozenset((str(short_tmp / "a.sock"),)))
    server.setblocking(False)
    with pytest.raises(BlockingIOError):
        server.accept()


@pytest.mark.usefixtures("unlisted")
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_SEQPACKET])
def test_a_server_that_is_not_listed_is_asked_and_hears_nothing(listen: Listen, short_tmp: Path, kind: int) -> None:
    server = listen(short_tmp / "a.sock", kind)
    (short_tmp / "a.sock").rename(short_tmp / "b.sock")
    assert at(short_tmp / "b.sock") == Server(frozenset((str(short_tmp / "a.sock"),)))
    client, _ = server.accept()
    with client:
        assert client.recv(1) == b""


@pytest.mark.usefixtures("unlisted")
def test_a_server_whose_queue_is_full_is_not_waited_for(short_tmp: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(str(short_tmp / "a.sock"))
        server.listen(0)
        client.connect(str(short_tmp / "a.sock"))
        assert at(short_tmp / "a.sock") is None


def test_where_nobody_listens_there_is_no_server(short_tmp: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as letters:
        bound.bind(str(short_tmp / "a.sock"))
        letters.bind(str(short_tmp / "letters.sock"))
        assert at(short_tmp / "a.sock") is None
        assert at(short_tmp / "letters.sock") is None


def test_without_a_list_a_server_is_asked_and_counts_as_one_of_this_network(
    listen: Listen, short_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> Any:
        raise OSError("the kernel refuses to list sockets")

    monkeypatch.setattr(unix_names, "_listeners", refuse)
    listen(short_tmp / "a.sock")
    assert at(short_tmp / "a.sock") == Server(frozenset((str(short_tmp / "a.sock"),)), foreign=False)


@pytest.mark.usefixtures("user_namespaces")
def test_a_server_in_another_network_is_asked_and_told_apart(short_tmp: Path) -> None:
    path = short_tmp / "a.sock"
    command = ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-c", ELSEWHERE, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"listens\n"
        found = at(path)
        process.communicate()
    assert found == Server(frozenset((str(path),)), foreign=True)


@given(st.binary(max_size=200))
def test_no_answer_of_the_kernel_makes_the_reader_run_for_ever_or_raise(data: bytes) -> None:
    assert len(unix_names._attributes(data)) <= len(data)
