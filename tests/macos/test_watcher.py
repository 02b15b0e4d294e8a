"""Whom the watcher ends: the command and its descendants, as the system's table of processes has them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.macos import watcher

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
    before = os.listdir("/proc/self/fd") if sys.platform == "linux" else []
    assert watcher._table() == b""
    assert not before or os.listdir("/proc/self/fd") == before
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        watcher.end_family(child.pid)
        assert child.wait(20) == -9
    watcher.end_family(child.pid)  # nobody any more
