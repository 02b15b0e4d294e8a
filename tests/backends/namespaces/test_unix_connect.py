"""Which Unix sockets may be connected: the pinned inode, recorded first, and nothing else."""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
from typing import Any

import pytest

from netsandbox.backends.namespaces import remote_process
from netsandbox.backends.namespaces.syscall_outcome import AllowedCall, Refusal


def test_the_allowed_socket_is_connected_and_recorded_first(scene: Any) -> None:
    assert scene.ask() == 0
    scene.server.accept()[0].close()
    (record,) = scene.log.records
    assert (record["verdict"], record["reason"], record["path"]) == ("allow", "rule", str(scene.path))


def test_no_record_no_call(scene: Any) -> None:
    """INV-5: with a log that cannot be written even the allowed socket is refused, repeats too."""
    assert scene.ask() == 0
    scene.server.accept()[0].close()
    scene.log.failed = "disk full"
    scene.listener.answers.clear()
    assert scene.ask() == errno.EACCES
    scene.listener.answers.clear()
    (scene.path.parent / "link").symlink_to(scene.path)
    assert scene.ask(path=str(scene.path.parent / "link")) == errno.EACCES
    scene.server.setblocking(False)
    with pytest.raises(BlockingIOError):
        scene.server.accept()


@pytest.mark.parametrize(
    ("path", "reason"), [("\0abstract", "unix-socket"), ("/etc/passwd", "unix-socket"), ("/", "unix-socket")]
)
def test_other_addresses_are_refused(scene: Any, path: str, reason: str) -> None:
    assert scene.ask(path=path) == errno.EACCES
    assert scene.denials[0][0] == reason


def test_names_may_not_be_bound(scene: Any) -> None:
    assert scene.ask("bind", path=str(scene.path.parent / "new.sock")) == errno.EACCES
    assert not (scene.path.parent / "new.sock").exists()


@pytest.mark.parametrize("name", ["a;id #", "a b", "$(id)", "`id`", "a'b", "ä.sock", "a\nb"])
def test_no_hint_has_a_path_that_a_shell_would_read_otherwise(scene: Any, name: str) -> None:
    """The command makes such a file by mknod(2), and the line about it is pasted."""
    other = scene.path.parent / name
    os.mknod(other, stat.S_IFSOCK | 0o600)
    assert scene.ask(path=str(other)) == errno.EACCES
    assert [(record["path"], record.get("hint")) for record in scene.log.records] == [(str(other), None)]


def test_the_hint_is_an_option_that_would_help(scene: Any) -> None:
    other = scene.path.parent / "other.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(other))
        scene.ask(path=str(other))
    scene.ask(path="\0abstract")
    assert [record.get("hint") for record in scene.log.records] == [f"--allow-unix-socket {other}", None]


def test_repeats_are_counted_and_written_at_the_end(scene: Any) -> None:
    for _ in range(5):
        scene.ask(path="\0x")
    scene.repeats.flush()
    assert [record["count"] for record in scene.log.records] == [1, 4]


def judge(scene: Any, address: bytes, name: str = "connect") -> AllowedCall | Refusal:
    with socket.socket(socket.AF_UNIX) as sock:
        said: AllowedCall | Refusal = scene.broker._unix(scene.call(name, sock, address), name, sock, address)
        return said


def test_a_yes_names_our_own_descriptor_of_the_inode(scene: Any) -> None:
    """Attack 116: what the kernel will look up is the opened inode, not the path once more."""
    task = judge(scene, struct.pack("=H", 1) + str(scene.path).encode() + b"\0")
    assert isinstance(task, AllowedCall)
    assert task.address == struct.pack("=H", 1) + b"/proc/self/fd/%d\0" % task.target
    assert os.fstat(task.target).st_ino == os.stat(scene.path).st_ino
    task.close()


@pytest.mark.parametrize("name", ["bind", "listen"])
def test_nothing_but_connect_is_ever_allowed(scene: Any, name: str) -> None:
    refusal = judge(scene, struct.pack("=H", 1) + str(scene.path).encode() + b"\0", name)
    assert isinstance(refusal, Refusal)
    assert refusal.record is not None
    assert (refusal.number, refusal.record["reason"], refusal.record["detail"]) == (errno.EACCES, "unix-socket", name)
    assert refusal.record["hint"] is None  # no option allows it


@pytest.mark.parametrize("family", [0, 2, 10, 256, 65535])
def test_an_address_of_another_family_is_refused(scene: Any, family: int) -> None:
    refusal = judge(scene, struct.pack("=H", family) + str(scene.path).encode() + b"\0")
    assert isinstance(refusal, Refusal)
    assert refusal.number == errno.EINVAL


def test_every_short_address_is_refused(scene: Any) -> None:
    """Cut anywhere, it is not the allowed path; an unnamed one is nobody's."""
    whole = struct.pack("=H", 1) + str(scene.path).encode()
    for length in range(len(whole)):
        refusal = judge(scene, whole[:length])
        assert isinstance(refusal, Refusal), whole[:length]
        assert refusal.number in (errno.EACCES, errno.EINVAL, errno.ENOENT)


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG])
def test_a_path_that_is_not_there_is_said_not_to_be(scene: Any, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(remote_process, "open_path", _raises(OSError(number, "x")))
    assert scene.ask() == number
    assert [reason for reason, _ in scene.denials] == ["unix-socket"]


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.EPERM, errno.ESRCH, errno.ENOMEM])
def test_a_path_that_cannot_be_opened_is_refused(scene: Any, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(remote_process, "open_path", _raises(OSError(number, "x")))
    assert scene.ask() == errno.EACCES


def test_a_pin_that_cannot_be_asked_admits_nothing(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(type(scene.pin), "admits", _raises(OSError(errno.ENOENT, "gone")))
    assert scene.ask() == errno.EACCES
    assert [reason for reason, _ in scene.denials] == ["unix-socket"]
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_caller_that_died_while_its_path_was_opened_gets_nothing(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """118: the descriptor was taken, but from whom is not known any more."""
    before = len(os.listdir("/proc/self/fd"))
    opened = remote_process.open_path

    def dies(pid: int, path: bytes) -> int:
        scene.listener.valid = False
        return opened(pid, path)

    monkeypatch.setattr(remote_process, "open_path", dies)
    assert scene.ask() == errno.EACCES
    assert scene.log.records == []
    assert len(os.listdir("/proc/self/fd")) == before


def _raises(error: Exception) -> Any:
    def fail(*_: object) -> None:
        raise error

    return fail
