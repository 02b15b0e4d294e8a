"""Which socket a name means, against the kernel's own list of listeners."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.linux import unix_pins
from netsandbox.linux.unix_pins import Pin

Listen = Callable[[Path], socket.socket]


@pytest.fixture
def listen() -> Iterator[Listen]:
    opened: list[socket.socket] = []

    def start(path: Path) -> socket.socket:
        server = socket.socket(socket.AF_UNIX)
        opened.append(server)
        server.bind(str(path))
        server.listen()
        return server

    yield start
    for server in opened:
        server.close()


def admits(pin: Pin, path: Path) -> bool:
    try:
        return pin.admits(path.stat())
    finally:
        pin.close()


def test_the_socket_that_was_there_is_meant_whatever_it_is_called_now(listen: Listen, short_tmp: Path) -> None:
    path = short_tmp / "a.sock"
    listen(path)
    pin = Pin(str(path))
    path.rename(short_tmp / "b.sock")
    assert admits(pin, short_tmp / "b.sock")


def test_a_socket_made_anew_under_the_same_name_is_meant(listen: Listen, short_tmp: Path) -> None:
    path = short_tmp / "a.sock"
    listen(path)
    pin = Pin(str(path))
    path.unlink()
    listen(path)
    assert admits(pin, path)


def test_a_socket_that_comes_later_is_meant(listen: Listen, short_tmp: Path) -> None:
    pin = Pin(str(short_tmp / "a.sock"))
    listen(short_tmp / "a.sock")
    assert admits(pin, short_tmp / "a.sock")


def test_a_server_bound_under_the_real_name_of_a_linked_folder_is_meant(listen: Listen, short_tmp: Path) -> None:
    """As /var/run is a link to /run."""
    (short_tmp / "run").mkdir()
    (short_tmp / "var").symlink_to(short_tmp / "run")
    pin = Pin(str(short_tmp / "var" / "a.sock"))
    listen(short_tmp / "run" / "a.sock")
    assert admits(pin, short_tmp / "run" / "a.sock")


@pytest.mark.attack(147)
@pytest.mark.parametrize("how", ["symlink", "hardlink", "rename"])
def test_another_server_under_the_name_is_not_meant(listen: Listen, short_tmp: Path, how: str) -> None:
    path, other = short_tmp / "a.sock", short_tmp / "other.sock"
    listen(other)
    pin = Pin(str(path))
    {"symlink": path.symlink_to, "hardlink": path.hardlink_to, "rename": other.rename}[how](
        path if how == "rename" else other
    )
    assert not admits(pin, path)


def test_a_file_that_nobody_listens_at_is_not_meant(short_tmp: Path) -> None:
    pin = Pin(str(short_tmp / "a.sock"))
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(short_tmp / "a.sock"))
        assert not admits(pin, short_tmp / "a.sock")


def test_a_name_that_is_gone_admits_nothing(listen: Listen, short_tmp: Path) -> None:
    listen(short_tmp / "other.sock")
    pin = Pin(str(short_tmp / "none.sock"))
    with pytest.raises(FileNotFoundError):
        pin.admits((short_tmp / "other.sock").stat())


def test_the_kernel_names_the_listener(listen: Listen, short_tmp: Path) -> None:
    listen(short_tmp / "a.sock")
    info = (short_tmp / "a.sock").stat()
    assert unix_pins.bound_names(info.st_dev, info.st_ino) == {os.fsencode(short_tmp / "a.sock")}
    assert unix_pins.bound_names(info.st_dev, info.st_ino + 100000) == set()


@given(st.binary(max_size=200))
def test_no_answer_of_the_kernel_makes_the_reader_run_for_ever_or_raise(data: bytes) -> None:
    assert len(unix_pins._attributes(data)) <= len(data)
