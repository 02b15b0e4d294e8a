"""A lock file that is not ours to open is refused: links, second names, pipes and files of others."""

from __future__ import annotations

import errno
import os
import socket
import subprocess

import pytest
from netsandbox_portmap.ranges import RangeLock

from tests.portmap.test_ranges import opened, path

__all__ = ["opened", "path"]

# An account that may not open a file is never root, so these two run as the ordinary account.
FRESHLY_MADE = """
import os, sys
from netsandbox_portmap import ranges
path, pauses = sys.argv[1], []
def pause(seconds):
    pauses.append(seconds)
    if len(pauses) == 3:
        os.chmod(path, 0o666)
os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0))
ranges.sleep = pause
print(ranges.RangeLock.open(path, shared=True).take(1, 1), len(pauses))
"""
REFUSED = """
import os, sys
from netsandbox_portmap import ranges
path, pauses, ahead = sys.argv[1], [], float(sys.argv[2])
os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0))
ranges.sleep, ranges.time = pauses.append, lambda: os.stat(path).st_ctime + ahead
try:
    ranges.RangeLock.open(path, shared=True)
except PermissionError:
    print("refused", len(pauses), round(sum(pauses), 3))
"""


@pytest.fixture
def as_user(ordinary_user):
    def run(code, *arguments):
        command = [ordinary_user.python, "-c", code, *map(str, arguments)]
        environment = {"PYTHONPATH": ordinary_user.pythonpath, "PATH": ordinary_user.path}
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment, cwd="/", **ordinary_user.popen
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return run


def mode_of(path):
    return os.stat(path).st_mode & 0o7777


def test_a_file_that_is_being_made_is_waited_for(short_tmp, as_user):
    """Between its maker's open and fchmod, the file refuses all other users."""
    assert as_user(FRESHLY_MADE, short_tmp / "ports") == ["True", "3"]


def test_a_file_that_stays_closed_is_refused_soon(short_tmp, as_user):
    refused, pauses, seconds = as_user(REFUSED, short_tmp / "fresh", 0)
    assert refused == "refused"
    assert int(pauses) > 1
    assert float(seconds) < 0.1


def test_an_old_file_that_is_closed_to_us_is_not_waited_for(short_tmp, as_user):
    assert as_user(REFUSED, short_tmp / "old", 60) == ["refused", "0", "0"]


def test_a_symbolic_link_is_refused_and_its_target_left_alone(tmp_path, path, opened):
    target = tmp_path / "target"
    target.touch(mode=0o600)
    os.symlink(target, path)
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        opened()
    assert mode_of(target) == 0o600


def test_a_dangling_link_is_refused_and_makes_nothing(tmp_path, path, opened):
    os.symlink(tmp_path / "nowhere", path)
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        opened()
    assert not (tmp_path / "nowhere").exists()


def test_a_second_name_of_some_file_is_refused(tmp_path, path, opened):
    target = tmp_path / "target"
    target.touch(mode=0o600)
    os.link(target, path)
    with pytest.raises(OSError, match="plain file"):
        opened()
    assert mode_of(target) == 0o600


def test_a_fifo_is_refused_without_waiting(path, opened):
    os.mkfifo(path)
    with pytest.raises(OSError, match="plain file"):
        opened()


def test_a_folder_and_a_socket_are_refused(path, opened, short_tmp):
    os.mkdir(path)
    with pytest.raises(IsADirectoryError):
        opened()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(short_tmp / "s"))
        with pytest.raises(OSError, match=os.strerror(errno.ENXIO)):
            RangeLock.open(str(short_tmp / "s"), shared=True)


def test_a_refusal_leaves_no_descriptor_behind(path, opened):
    os.mkfifo(path)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with pytest.raises(OSError, match="plain file"):
            opened()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        RangeLock.open(str(tmp_path / "no" / "ports"), shared=False)
