"""A byte of the lock file has one holder, in one process or in many, and none once the holder is gone."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_portmap import ranges
from netsandbox_portmap.ranges import JoinedLocks, RangeLock

# Holds 100-199 until standard input ends. Its child outlives it, and inherits its descriptors if it can.
HOLDER = """
import subprocess, sys
from netsandbox_portmap.ranges import RangeLock
lock = RangeLock.open(sys.argv[1], shared=True)
assert lock.take(100, 100)
child = subprocess.Popen(["sleep", "20"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, close_fds=False)
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "ports")


@pytest.fixture
def opened(path):
    """Opens the lock file again, as another session would."""
    locks = []

    def again(*, shared=True):
        locks.append(RangeLock.open(path, shared=shared))
        return locks[-1]

    yield again
    for lock in locks:
        lock.close()


def mode_of(path):
    return os.stat(path).st_mode & 0o7777


def test_two_holders_in_one_process_exclude_each_other(opened):
    one, other = opened(), opened()
    assert one.take(100, 100)
    assert not other.take(199, 1)
    assert not other.take(0, 1000)
    assert other.take(200, 100)
    assert not one.take(150, 100)


def test_a_holder_does_not_get_a_byte_twice(opened):
    """The kernel would grant it, and two windows of one process would overlap."""
    lock = opened()
    assert lock.take(100, 100)
    assert not lock.take(100, 100)
    assert not lock.take(199, 2)
    assert lock.take(200, 1)


def test_what_was_given_back_can_be_taken(opened):
    one, other = opened(), opened()
    assert one.take(100, 100)
    assert one.take(200, 100)
    one.release(100, 100)
    assert other.take(100, 100)
    assert not other.take(200, 1)


def test_giving_back_what_was_not_taken_changes_nothing(opened):
    one, other = opened(), opened()
    assert one.take(100, 100)
    one.release(100, 50)
    one.release(0, 1)
    other.release(100, 100)
    assert not other.take(100, 1)


def test_closing_gives_back_everything_and_can_be_repeated(opened):
    one, other = opened(), opened()
    assert one.take(100, 100)
    assert one.take(70000, 1)
    one.close()
    one.close()
    one.release(100, 100)
    assert other.take(0, 80000)


def test_the_obstacle_is_named(opened):
    one, other = opened(), opened()
    assert one.take(150, 100)
    assert other.obstacle(100, 100) == (150, 100)
    assert one.obstacle(100, 100) == (150, 100)
    assert other.obstacle(100, 50) is None


@pytest.mark.parametrize(("start", "length"), [(0, 0), (5, -1), (-1, 1)])
def test_no_range_means_the_rest_of_the_file(opened, start, length):
    with pytest.raises(ValueError, match="length"):
        opened().take(start, length)


def test_an_error_of_the_kernel_is_not_taken_for_an_answer(path, opened):
    opened()
    lock = RangeLock(os.open(path, os.O_RDONLY))  # a write lock needs a descriptor for writing
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        lock.take(1, 1)
    lock.close()


steps = st.lists(
    st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 12), st.integers(1, 6)), min_size=1, max_size=30
)


@given(steps)
def test_no_byte_has_two_holders_whatever_the_order(steps):
    with tempfile.TemporaryDirectory() as folder:
        locks = [RangeLock.open(f"{folder}/ports", shared=False) for _ in range(3)]
        held = {}  # (holder, start, length) -> its bytes
        for who, taking, start, length in steps:
            wanted = set(range(start, start + length))
            if taking:
                free = not any(wanted & taken for taken in held.values())
                assert locks[who].take(start, length) is free
                if free:
                    held[who, start, length] = wanted
            else:
                locks[who].release(start, length)
                held.pop((who, start, length), None)
        for lock in locks:
            lock.close()


@pytest.mark.attack(204)
def test_a_killed_holder_holds_nothing_though_what_it_started_lives_on(path, opened, caller):
    environment = {"PYTHONPATH": caller.pythonpath, "PATH": caller.path}
    command = [sys.executable, "-c", HOLDER, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as holder:
        orphan = int(holder.stdout.readline())
        try:
            lock = opened()
            assert not lock.take(150, 1)
            holder.kill()
            holder.wait(20)
            assert lock.take(100, 100)
            os.kill(orphan, 0)
        finally:
            holder.kill()
            os.kill(orphan, signal.SIGKILL)


def test_closing_frees_the_range_while_a_forked_child_has_the_descriptor(opened):
    lock, other = opened(), opened()
    assert lock.take(100, 100)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    os.close(reading)
    assert not other.take(100, 100)
    lock.close()
    assert other.take(100, 100)
    os.close(writing)
    os.waitpid(child, 0)


@pytest.mark.parametrize(("shared", "mode"), [(True, 0o666), (False, 0o600)])
@pytest.mark.parametrize("mask", [0o077, 0o022, 0o000])
def test_the_file_has_its_mode_whatever_the_mask(path, opened, shared, mode, mask):
    before = os.umask(mask)
    try:
        opened(shared=shared)
    finally:
        os.umask(before)
    assert mode_of(path) == mode


def test_a_file_whose_maker_was_killed_too_early_is_mended(path, opened):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    opened()
    assert mode_of(path) == 0o666


def test_opening_keeps_the_file_from_those_who_clean_up(path, opened):
    opened()
    os.utime(path, (0, 0))
    opened()
    assert os.stat(path).st_mtime > time.time() - 60


def test_cleaners_that_look_at_locks_leave_an_open_file(path, opened):
    """systemd-tmpfiles removes no file that it cannot lock with flock(2)."""
    first, second = opened(), opened()
    cleaner = os.open(path, os.O_RDONLY)
    try:
        for lock in (first, second):
            with pytest.raises(BlockingIOError):
                fcntl.flock(cleaner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lock.close()
        fcntl.flock(cleaner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        opened()  # a cleaner at work keeps no session from its start
    finally:
        os.close(cleaner)


def test_a_file_that_is_removed_while_it_is_opened_is_opened_again(path, opened, monkeypatch):
    """The lock of a file without a name would exclude nobody."""
    flock, removed = fcntl.flock, []

    def remove_first(descriptor, how):
        if not removed:
            removed.append(os.fstat(descriptor).st_ino)
            os.unlink(path)
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    first = opened()
    assert removed
    assert first.take(7, 1)
    assert not opened().take(7, 1)


def test_a_cleaner_that_holds_the_file_when_it_is_opened_may_remove_it(path, opened, monkeypatch):
    """`netsandbox uninstall` of another account of this user: the session must not hold a file without a name."""
    opened().close()
    cleaner = os.open(path, os.O_RDONLY)
    fcntl.flock(cleaner, fcntl.LOCK_EX)

    at_work = [cleaner]

    def remove(seconds):
        while at_work:
            os.unlink(path)
            os.close(at_work.pop())

    monkeypatch.setattr(ranges, "sleep", remove)
    first = opened()
    remove(0)
    assert first.take(7, 1)
    assert not opened().take(7, 1)


def test_a_file_that_is_always_removed_is_an_error(path, opened, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", lambda *_: os.unlink(path))
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="not a plain file"):
        opened()
    assert len(os.listdir("/proc/self/fd")) == before


class TestSeveralFiles:
    @pytest.fixture
    def joined(self, tmp_path):
        """joined(name, ...) opens these files as one."""
        made = []

        def join(*names):
            made.append(JoinedLocks([RangeLock.open(str(tmp_path / name), shared=False) for name in names]))
            return made[-1]

        yield join
        for locks in made:
            locks.close()

    def test_one_file_in_common_is_enough_to_exclude(self, joined):
        first = joined("a", "b")
        assert first.take(10, 5)
        for names in (("a",), ("b",), ("b", "c"), ("a", "b")):
            other = joined(*names)
            assert not other.take(12, 1)
            assert other.obstacle(12, 1) == (10, 5)
            assert other.take(15, 1)
            other.close()
        assert joined("c").take(12, 1)

    def test_what_one_file_refuses_is_held_in_none(self, joined):
        assert joined("b").take(10, 5)
        both = joined("a", "b")
        assert not both.take(12, 1)
        assert joined("a").take(12, 1)

    def test_an_error_in_the_second_file_leaves_nothing_held(self, joined, monkeypatch):
        both, take = joined("a", "b"), RangeLock.take

        def fail(self, start, length):
            if self is both.files[1]:
                raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
            return take(self, start, length)

        monkeypatch.setattr(RangeLock, "take", fail)
        with pytest.raises(OSError, match="locks"):
            both.take(10, 5)
        assert joined("a").take(10, 5)

    def test_what_was_released_is_free_in_all_files(self, joined):
        first, second = joined("a", "b"), joined("a", "b")
        assert first.take(10, 5)
        first.release(10, 5)
        assert second.obstacle(10, 5) is None
        assert second.take(10, 5)
