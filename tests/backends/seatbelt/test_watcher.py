"""Whom the watcher ends: the command and its descendants, as the system's table of processes has them."""

from __future__ import annotations

import os
import select
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt import watcher

TABLE = b"    1     0\n   10     1\n   11    10\n   12    10\n   13    11\n   20     1\n"


def test_children_are_found_by_their_parents() -> None:
    assert watcher.children(TABLE, {10}) == {11, 12}
    assert watcher.children(TABLE, {10, 11, 12}) == {13}
    assert watcher.children(TABLE, {10, 11, 12, 13}) == set()


@given(st.binary(max_size=80), st.sets(st.integers(0, 99), max_size=4))
def test_any_table_gives_new_numbers_and_never_the_first_process(table: bytes, family: set[int]) -> None:
    found = watcher.children(table, family)
    assert found.isdisjoint(family | {0, 1})


def test_the_systems_table_has_us_in_it() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.pid in watcher.children(watcher._table(), {os.getpid()})
        child.kill()


def test_without_the_table_the_command_itself_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "PS", "/nonexistent/ps")
    assert watcher._table() == b""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        watcher.end_family(child.pid)
        assert child.wait(20) == -9
    watcher.end_family(child.pid)  # nobody any more


UNCHANGED = """\
import os
from netsandbox.backends.seatbelt import watcher
watcher.PS = "/nonexistent/ps"
before = os.listdir("/proc/self/fd")
assert watcher._table() == b""
assert os.listdir("/proc/self/fd") == before
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into Linux's /proc, which no Mac has")
def test_without_the_table_no_descriptor_is_left() -> None:
    """In a process of its own: in this one earlier tests' garbage may be closed meanwhile."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", UNCHANGED], env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


# On a Mac a descriptor that is given its own number by posix_spawn(2) is closed at exec all the same.
AS_ON_A_MAC = """\
import os, sys
from netsandbox.backends.seatbelt import watcher
real = os.posix_spawn
def spawn(path, words, environment, *, file_actions):
    return real(path, words, environment, file_actions=[each for each in file_actions if each[1] != each[2]])
os.posix_spawn = spawn
watcher.main(sys.argv[1:])
"""
FAMILY = """\
import subprocess, sys
subprocess.Popen(["/bin/sh", "-c", "echo x >&2; exec sleep 60"])
sys.stdin.read()
"""


def test_descendants_are_ended_with_the_supervisor_also_where_numbers_are_kept() -> None:
    """INV-10: their table is read by a pipe that must not get one of the three standard numbers."""
    life, held = os.pipe()
    family = [sys.executable, "-c", FAMILY]
    with subprocess.Popen(family, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as command:
        assert command.stderr is not None
        assert command.stderr.readline() == b"x\n"  # from the child, which has the other end as well
        nothing = os.open(os.devnull, os.O_RDWR)
        path = os.pathsep.join(sys.path)
        words = [sys.executable, "-c", AS_ON_A_MAC, str(command.pid)]
        actions = [(os.POSIX_SPAWN_DUP2, source, at) for at, source in enumerate((nothing, nothing, nothing, life))]
        watching = os.posix_spawn(words[0], words, {"PYTHONPATH": path}, file_actions=actions)
        assert os.waitpid(watching, 0)[1] == 0
        os.close(life)
        os.close(nothing)
        os.close(held)
        assert command.wait(20) == -9
        assert select.select([command.stderr], [], [], 20)[0]  # ends when the child has, too
        assert command.stderr.read() == b""
