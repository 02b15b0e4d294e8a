"""Only a regular file of our own will do; everything else is refused before the command starts (INV-1)."""

from __future__ import annotations

import errno
import os
import socket
import stat
from pathlib import Path

import pytest

from netsandbox.audit.log import AuditLog
from netsandbox.audit.log_file import open_file, read_tail
from netsandbox.errors import NetsandboxError


def refused(path: Path | str) -> str:
    with pytest.raises(NetsandboxError) as caught:
        AuditLog.open(str(path), "s")
    assert ";" in str(caught.value), "a message ends with what to do"
    return str(caught.value)


def test_a_new_log_is_private_in_private_directories(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "audit.jsonl"
    previous = os.umask(0)
    try:
        AuditLog.open(str(path), "s").close()
    finally:
        os.umask(previous)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("option", ["audit-log", "debug-log", "har"])
def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    def mkdir(path: str, mode: int) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "mkdir", mkdir)
    with pytest.raises(NetsandboxError) as caught:
        open_file(f"{tmp_path}/a/b/log", option)
    why = f"lies in '{tmp_path}/a', which cannot be made (Permission denied); give another place with --{option}"
    assert str(caught.value).endswith(why)


def test_a_file_system_of_the_kernel_takes_no_directory() -> None:
    assert "lies in '/proc/none', which cannot be made" in refused("/proc/none/log")


def test_the_descriptor_is_not_inherited_and_only_appends(tmp_path: Path) -> None:
    import fcntl

    fd = open_file(str(tmp_path / "audit.jsonl"))
    assert not os.get_inheritable(fd)
    assert fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND
    os.close(fd)


@pytest.mark.attack(176)
def test_176_a_fifo_without_a_reader_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo", 0o600)
    assert "regular file" in refused(tmp_path / "fifo")


@pytest.mark.attack(176)
def test_176_sockets_directories_and_devices_are_refused(tmp_path: Path) -> None:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "s"))
    refused(tmp_path / "s")
    server.close()
    assert "directory" in refused(tmp_path)
    for device in ("/dev/full", "/dev/null"):
        refused(device)


def test_links_are_refused_because_they_lead_into_other_files(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("")
    target.chmod(0o600)
    (tmp_path / "soft").symlink_to(target)
    os.link(target, tmp_path / "hard")
    assert "symbolic link" in refused(tmp_path / "soft")
    assert "hard links" in refused(tmp_path / "hard")
    assert target.read_text() == ""


def test_a_dangling_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "soft").symlink_to(tmp_path / "nowhere")
    refused(tmp_path / "soft")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("content", ["hello\n", "hello", "x" * 200_000, '{"a":1}\n', "\n", "\n\n"])
def test_a_file_that_is_no_audit_log_is_not_written_into(tmp_path: Path, content: str) -> None:
    path = tmp_path / "notes"
    path.write_text(content)
    path.chmod(0o600)
    assert "not an audit log" in refused(path)
    assert path.read_text() == content


def test_a_file_that_others_can_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text("")
    path.chmod(0o620)
    assert "chmod" in refused(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text("")
    path.chmod(0o600)
    os.chown(path, 65534, 65534)
    assert "another user" in refused(path)


@pytest.mark.parametrize("path", ["/proc/nowhere/audit.jsonl", "/dev/null/audit.jsonl", "a\0b", "/tmp/" + "x" * 300])
def test_impossible_places_are_refused(path: str) -> None:
    refused(path)


def test_two_sessions_cannot_share_a_log(tmp_path: Path) -> None:
    first = AuditLog.open(str(tmp_path / "audit.jsonl"), "one")
    assert "in use" in refused(tmp_path / "audit.jsonl")
    first.close()
    AuditLog.open(str(tmp_path / "audit.jsonl"), "two").close()


@pytest.mark.parametrize(
    ("content", "torn"), [(b'{"v":1}\n', False), (b'{"v":1}\n{"v', True), (b'{"', True), (b"", False)]
)
def test_the_tail_tells_a_torn_line(tmp_path: Path, content: bytes, *, torn: bool) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(content)
    fd = os.open(path, os.O_RDONLY)
    size, _, found = read_tail(fd, str(path))
    os.close(fd)
    assert (size, found) == (len(content), torn)


def test_a_file_system_without_locks_is_no_reason_to_refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(fd: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("netsandbox.audit.log_file.fcntl.flock", unsupported)
    os.close(open_file(str(tmp_path / "audit.jsonl")))
