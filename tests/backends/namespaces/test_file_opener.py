"""The native opener: regular files and folders by paths without links, through mounts that hold nothing else."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from netsandbox.backends.namespaces import file_opener
from netsandbox.backends.namespaces.file_opener import FileOpener, session_namespaces
from netsandbox.runtime.loop import Loop

pytestmark = pytest.mark.usefixtures("user_namespaces")
UNSHARE = ["unshare", "--user", "--mount", "--map-current-user"]


class Bench:
    def __init__(self, pid: int) -> None:
        self.loop = Loop(lambda error: pytest.fail(repr(error)))
        self.opener = FileOpener(self.loop, pid)
        self.fds: list[int] = []

    def request(self, does: int, path: Path | str, flags: int = 0, mode: int = 0, *, writes: bool = False) -> int:
        """The errno; a descriptor is kept."""
        found: list[int] = []

        def done(number: int, fd: int) -> None:
            found.append(number)
            if fd >= 0:
                self.fds.append(os.dup(fd))
            self.loop.stop()

        self.opener.request(does, str(path), done, writes=writes, flags=flags, mode=mode)
        if not found:
            self.loop.run()
        return found[0]

    def close(self) -> None:
        self.opener.close()
        for fd in self.fds:
            os.close(fd)
        self.loop.close()


def session(*before: str) -> Iterator[int]:
    """The pid of a process in namespaces of its own."""
    with subprocess.Popen([*UNSHARE, *before, "sh", "-c", "echo; exec sleep 100"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.fixture
def bench() -> Iterator[Bench]:
    for pid in session():
        made = Bench(pid)
        yield made
        made.close()


def test_a_file_for_reading_cannot_be_opened_for_writing(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("content")
    assert bench.request(file_opener.OPEN, file) == 0
    (fd,) = bench.fds
    assert os.read(fd, 99) == b"content"
    with pytest.raises(OSError, match="Read-only file system"):
        os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
    assert bench.request(file_opener.OPEN, file, os.O_RDWR | os.O_TRUNC, writes=True) == 0
    os.write(bench.fds[1], b"new")
    assert file.read_text() == "new"


def test_a_folder_has_nothing_above_it(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "canary").write_text("")
    assert bench.request(file_opener.OPEN, tmp_path / "in", os.O_DIRECTORY) == 0
    above = os.open("../../..", os.O_PATH | os.O_DIRECTORY, dir_fd=bench.fds[0])
    bench.fds.append(above)
    assert os.listdir(f"/proc/self/fd/{above}") == ["deep"]


def test_what_is_no_file_or_is_reached_by_a_link_is_refused(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("canary")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder").symlink_to(".")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "folder/file", "pipe"):
        assert bench.request(file_opener.OPEN, tmp_path / name) == errno.ELOOP
    assert bench.request(file_opener.OPEN, tmp_path / "gone") == errno.ENOENT
    assert bench.fds == []


def test_a_file_is_made_once_with_its_mode(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "made"
    assert bench.request(file_opener.MAKE, file, os.O_WRONLY, 0o640, writes=True) == 0
    assert file.stat().st_mode & 0o777 == 0o640
    assert bench.request(file_opener.MAKE, file, os.O_WRONLY, 0o640, writes=True) == errno.EEXIST
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert bench.request(file_opener.MAKE, tmp_path / "link", os.O_WRONLY, 0o640, writes=True) == errno.EEXIST
    assert not (tmp_path / "target").exists()


def test_a_process_that_is_gone_fails_what_waits_and_what_comes(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    os.kill(bench.opener._pid, 9)
    assert bench.request(file_opener.OPEN, tmp_path / "file") in (errno.EIO, errno.EPIPE)
    assert bench.request(file_opener.OPEN, tmp_path / "file") in (errno.EIO, errno.EPIPE)


def test_namespaces_that_a_process_made_for_itself_are_not_taken() -> None:
    for pid in session(*UNSHARE):
        with pytest.raises(OSError, match="mounts of its own"):
            session_namespaces(pid)
    with pytest.raises(OSError, match="Operation not permitted"):  # nothing is above our own
        session_namespaces(os.getpid())
