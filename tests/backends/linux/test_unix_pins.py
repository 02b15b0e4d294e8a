"""Which socket a name means, against the kernel's own list of listeners."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from netsandbox.backends.linux import unix_pins
from netsandbox.backends.linux.unix_names import Server
from netsandbox.backends.linux.unix_pins import PinnedSocket, is_name_of
from netsandbox.errors import HostError, UsageError

Listen = Callable[[Path | str], socket.socket]


def admits(pin: PinnedSocket, path: Path) -> bool:
    try:
        info = path.stat()
        return pin.admits((info.st_dev, info.st_ino))
    finally:
        pin.close()


def test_the_socket_that_was_there_is_meant_whatever_it_is_called_now(listen: Listen, short_tmp: Path) -> None:
    path = short_tmp / "a.sock"
    listen(path)
    pin = PinnedSocket(str(path))
    path.rename(short_tmp / "b.sock")
    assert admits(pin, short_tmp / "b.sock")


def test_a_socket_made_anew_under_the_same_name_is_meant(listen: Listen, short_tmp: Path) -> None:
    path = short_tmp / "a.sock"
    listen(path)
    pin = PinnedSocket(str(path))
    path.unlink()
    listen(path)
    assert admits(pin, path)


def test_a_socket_that_comes_later_is_meant(listen: Listen, short_tmp: Path) -> None:
    pin = PinnedSocket(str(short_tmp / "a.sock"))
    listen(short_tmp / "a.sock")
    assert admits(pin, short_tmp / "a.sock")


@pytest.fixture
def theirs(monkeypatch: pytest.MonkeyPatch, short_tmp: Path) -> Path:
    """A folder in which no command of this user can change anything."""
    folder = short_tmp / "theirs"
    folder.mkdir()
    monkeypatch.setattr(unix_pins, "user_can_change", lambda path: path != str(folder))
    return folder


@pytest.mark.parametrize("late", [False, True], ids=["there already", "comes later"])
def test_a_server_bound_under_the_real_name_of_a_linked_folder_is_meant(
    listen: Listen, short_tmp: Path, theirs: Path, late: bool
) -> None:
    """As /var/run is a link to /run."""
    (short_tmp / "run").mkdir()
    (theirs / "var").symlink_to(short_tmp / "run")
    path = theirs / "var" / "a.sock"
    pin = PinnedSocket(str(path)) if late else None
    listen(short_tmp / "run" / "a.sock")
    assert admits(pin or PinnedSocket(str(path)), short_tmp / "run" / "a.sock")


def test_a_server_bound_through_a_link_is_meant_by_the_real_name(listen: Listen, short_tmp: Path, theirs: Path) -> None:
    (short_tmp / "run").mkdir()
    (theirs / "var").symlink_to(short_tmp / "run")
    listen(theirs / "var" / "a.sock")
    assert admits(PinnedSocket(str(short_tmp / "run" / "a.sock")), short_tmp / "run" / "a.sock")


@pytest.mark.attack(146)
@pytest.mark.parametrize("late", [False, True], ids=["there already", "comes later"])
def test_a_link_that_a_command_could_have_made_leads_to_no_server(listen: Listen, short_tmp: Path, late: bool) -> None:
    (short_tmp / "run").mkdir()
    (short_tmp / "var").symlink_to(short_tmp / "run")
    path = short_tmp / "var" / "a.sock"
    if late:
        pin = PinnedSocket(str(path))
        listen(short_tmp / "run" / "a.sock")
        assert not admits(pin, path)
    else:
        listen(short_tmp / "run" / "a.sock")
        with pytest.raises(UsageError, match=f"write '{short_tmp}/run/a.sock' if you mean that one"):
            PinnedSocket(str(path))


def test_a_server_that_was_bound_by_that_very_name_is_meant_whatever_links_it_has(
    listen: Listen, short_tmp: Path
) -> None:
    (short_tmp / "run").mkdir()
    (short_tmp / "var").symlink_to(short_tmp / "run")
    listen(short_tmp / "var" / "a.sock")
    assert admits(PinnedSocket(f"{short_tmp}//var/./a.sock"), short_tmp / "run" / "a.sock")


@pytest.mark.parametrize("bound", ["a.sock", "./a.sock", "../folder/a.sock", "../folder//a.sock"])
def test_a_server_that_was_bound_by_a_relative_name_is_meant(
    listen: Listen, short_tmp: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    folder = short_tmp / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    listen(bound)
    assert admits(PinnedSocket(str(folder / "a.sock")), folder / "a.sock")


@pytest.mark.parametrize("how", ["rename", "link"])
def test_a_server_that_puts_its_socket_into_place_is_meant(listen: Listen, short_tmp: Path, how: str) -> None:
    """As ssh's ControlMaster and supervisord do."""
    path, temporary = short_tmp / "a.sock", short_tmp / "a.sock.6GhT"
    listen(temporary)
    temporary.rename(path) if how == "rename" else path.hardlink_to(temporary)
    assert admits(PinnedSocket(str(path)), path)


@pytest.mark.attack(147)
@pytest.mark.parametrize("how", ["symlink", "hardlink", "rename", "folder"])
def test_a_server_that_was_put_there_before_the_start_is_an_error(listen: Listen, short_tmp: Path, how: str) -> None:
    path, other = short_tmp / "mine" / "a.sock", short_tmp / "agents" / "other.sock"
    other.parent.mkdir()
    server = listen(other)
    if how == "folder":
        other.rename(other.with_name("a.sock"))
        other.parent.rename(path.parent)
    else:
        path.parent.mkdir()
        {"symlink": path.symlink_to, "hardlink": path.hardlink_to, "rename": other.rename}[how](
            path if how == "rename" else other
        )
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(UsageError, match="a command may have put it there"):
        PinnedSocket(str(path))
    assert len(os.listdir("/proc/self/fd")) == before
    server.setblocking(False)
    with pytest.raises(BlockingIOError):  # and nobody has spoken with it
        server.accept()


@pytest.mark.attack(146)
def test_a_link_from_where_the_server_was_bound_does_not_make_it_the_one_meant(listen: Listen, short_tmp: Path) -> None:
    """Moved away, with a link left behind: the old name leads to the allowed one, by a link of the command's."""
    path, other = short_tmp / "a.sock", short_tmp / "other.sock"
    listen(other)
    other.rename(path)
    other.symlink_to(path)
    with pytest.raises(UsageError, match="started at"):
        PinnedSocket(str(path))


def test_where_no_command_can_put_anything_the_socket_is_meant_whoever_listens(
    listen: Listen, short_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = short_tmp / "a.sock"
    listen(short_tmp / "other.sock")
    (short_tmp / "other.sock").rename(path)
    monkeypatch.setattr(unix_pins, "user_can_change", lambda folder: False)
    assert admits(PinnedSocket(str(path)), path)
    for ours in (str(short_tmp), os.path.dirname(short_tmp)):  # a folder above is as good
        monkeypatch.setattr(unix_pins, "user_can_change", lambda folder, ours=ours: folder == ours)
        with pytest.raises(UsageError):
            PinnedSocket(str(path))


@pytest.mark.parametrize(
    ("bound", "foreign", "meant"),
    [("/inside/a.sock", True, True), ("/inside/b.sock", True, False), ("/inside/a.sock", False, False)],
)
def test_of_a_server_in_a_container_the_last_part_of_the_name_counts(
    listen: Listen, short_tmp: Path, monkeypatch: pytest.MonkeyPatch, bound: str, foreign: bool, meant: bool
) -> None:
    """Its folders may be mounted here under another name."""
    listen(short_tmp / "a.sock")
    monkeypatch.setattr(unix_pins, "server_at", lambda fd: Server(frozenset((bound,)), foreign))
    if meant:
        assert admits(PinnedSocket(str(short_tmp / "a.sock")), short_tmp / "a.sock")
    else:
        with pytest.raises(UsageError):
            PinnedSocket(str(short_tmp / "a.sock"))


def test_a_path_that_leads_elsewhere_from_one_look_to_the_next_is_an_error(
    listen: Listen, short_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listen(short_tmp / "other.sock")
    (short_tmp / "a.sock").symlink_to(short_tmp / "other.sock")
    opened = os.open

    def exchanges(path: str, *rest: int) -> int:
        descriptor = opened(path, *rest)
        (short_tmp / "a.sock").unlink()
        return descriptor

    with monkeypatch.context() as patched:  # no longer: the folder's removal opens it too
        patched.setattr(unix_pins.os, "open", exchanges)
        with pytest.raises(HostError, match="leads elsewhere"):
            PinnedSocket(str(short_tmp / "a.sock"))


MEANT = "/home/me/run/db.sock"


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        (MEANT, True),
        ("/home/me//run/./db.sock", True),
        (f"{MEANT}.1", True),
        ("db.sock", True),
        ("run/db.sock", True),
        ("../run/db.sock", True),
        (f"{MEANT}2", False),
        (f"{MEANT}.d/x", False),
        ("/home/me/run/db", False),
        ("/home/me/db.sock", False),
        ("/home/me/run/../run/db.sock", False),
        ("b.sock", False),
        ("other/db.sock", False),
        ("db.sock.1", False),
        ("", False),
        ("..", False),
    ],
)
def test_names_that_a_server_may_have_made_the_file_under(bound: str, expected: bool) -> None:
    assert is_name_of(bound, MEANT) is expected


@given(st.text(alphabet="a./"), st.lists(st.text(alphabet="ab.", min_size=1), min_size=1))
def test_a_name_that_ends_otherwise_is_never_taken(bound: str, names: list[str]) -> None:
    assume(not {".", ".."} & set(names))  # the policy takes no such path,
    assume(os.path.basename(bound) not in ("", ".", ".."))  # and the kernel makes no file of such a name
    if is_name_of(bound, "/" + "/".join(names)):
        assert os.path.basename(bound).startswith(names[-1])


@pytest.mark.attack(147)
@pytest.mark.parametrize("how", ["symlink", "hardlink", "rename"])
def test_another_server_under_the_name_is_not_meant(listen: Listen, short_tmp: Path, how: str) -> None:
    path, other = short_tmp / "a.sock", short_tmp / "other.sock"
    listen(other)
    pin = PinnedSocket(str(path))
    {"symlink": path.symlink_to, "hardlink": path.hardlink_to, "rename": other.rename}[how](
        path if how == "rename" else other
    )
    assert not admits(pin, path)


def test_a_file_that_nobody_listens_at_is_not_meant(short_tmp: Path) -> None:
    pin = PinnedSocket(str(short_tmp / "a.sock"))
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(short_tmp / "a.sock"))
        assert not admits(pin, short_tmp / "a.sock")


def test_a_name_that_is_gone_admits_nothing(listen: Listen, short_tmp: Path) -> None:
    listen(short_tmp / "other.sock")
    pin = PinnedSocket(str(short_tmp / "none.sock"))
    with pytest.raises(FileNotFoundError):
        admits(pin, short_tmp / "other.sock")
