"""What a session may have written is not the user's word: each way to bring a file into its place, and its twin."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox import paths
from netsandbox.config.registries.provenance import interpreter, interpreter_in, is_out_of_reach, untrusted_place
from netsandbox.runtime.written_folders import remember_written
from tests.rig.file_clock import begin_sessions, settle, trust_place

NOBODY = 65534


def is_old_program(path: str) -> bool:
    return untrusted_place(path, {}) is None


class Scene:
    """A home with settings, an old stranger's file beside them, and a first session when it is called for."""

    def __init__(self, base: Path) -> None:
        self.home = base / "home"
        self.settings = self.home / ".config" / "pip" / "pip.conf"
        self.strangers = self.home / "cloned" / "pip" / "pip.conf"
        for file in (self.settings, self.strangers):
            file.parent.mkdir(parents=True)
            file.write_text("old")

    def begin(self) -> None:
        """The first session starts, which can write everywhere; the clock of files has gone on since."""
        tick = self.home / "tick"
        tick.touch()
        while tick.stat().st_ctime_ns <= self.strangers.parent.stat().st_ctime_ns:
            tick.touch()
        begin_sessions()


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    made = Scene(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("XDG_STATE_HOME", str(made.home / ".local" / "state"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return made


def test_before_the_first_session_every_file_is_the_users(scene: Scene) -> None:
    assert is_out_of_reach(str(scene.settings))
    assert is_old_program(str(scene.settings))


@pytest.mark.attack(228)
@pytest.mark.parametrize("change", ["deleted", "moved"])
def test_a_planted_file_is_not_believed_after_the_state_home_is_new(
    scene: Scene, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "memory_home", lambda: str(tmp_path / "memory"))
    scene.begin()
    planted = scene.home / ".npmrc"
    planted.write_text("registry=https://evil.example/")
    if change == "deleted":
        shutil.rmtree(paths.state_home())
    else:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "new"))
    assert not is_out_of_reach(str(planted))
    assert is_out_of_reach(str(scene.settings)), "the twin is older"


def test_a_file_from_before_it_stays_the_users(scene: Scene) -> None:
    scene.begin()
    (scene.home / ".config" / "other").mkdir()  # no session can move this folder, so its time says nothing
    assert is_out_of_reach(str(scene.settings))
    assert is_old_program(str(scene.settings))


def rewritten(scene: Scene) -> None:
    scene.settings.write_text("new")
    os.utime(scene.settings, ns=(1, 1))


def replaced(scene: Scene) -> None:
    scene.strangers.rename(scene.settings)


def linked(scene: Scene) -> None:
    scene.settings.unlink()
    scene.settings.symlink_to(scene.strangers)


def hard_linked(scene: Scene) -> None:
    scene.settings.unlink()
    scene.settings.hardlink_to(scene.strangers)


@pytest.mark.parametrize("change", [rewritten, replaced, linked, hard_linked])
def test_a_file_that_was_changed_later_is_not(scene: Scene, change: Callable[[Scene], None]) -> None:
    scene.begin()
    change(scene)
    assert not is_out_of_reach(str(scene.settings))
    assert not is_old_program(str(scene.settings))


def moved_folder(scene: Scene) -> None:
    scene.settings.parent.rename(scene.home / "away")
    scene.strangers.parent.rename(scene.settings.parent)


def linked_folder(scene: Scene) -> None:
    scene.settings.parent.rename(scene.home / "away")
    scene.settings.parent.symlink_to(scene.strangers.parent)


@pytest.mark.parametrize("change", [moved_folder, linked_folder])
def test_an_old_file_in_a_folder_that_was_moved_there_is_not(scene: Scene, change: Callable[[Scene], None]) -> None:
    scene.begin()
    before = scene.strangers.stat()
    change(scene)
    now = scene.settings.stat()
    assert (now.st_ino, now.st_ctime_ns) == (before.st_ino, before.st_ctime_ns), "by its own time it would be old"
    assert not is_out_of_reach(str(scene.settings))


def test_a_link_from_before_to_a_file_from_before_is_the_users(scene: Scene) -> None:
    link = scene.home / ".npmrc"
    link.symlink_to("cloned/../cloned/./pip/pip.conf")
    scene.begin()
    assert is_out_of_reach(str(link))
    scene.strangers.write_text("new")
    assert not is_out_of_reach(str(link))


def test_what_is_not_there_or_goes_round_in_circles_is_nobodys(scene: Scene) -> None:
    link = scene.home / "circle"
    link.symlink_to("circle")
    for path in (str(link), str(scene.home / "none"), f"{scene.home}/a\0b"):
        assert not is_out_of_reach(path)


@pytest.fixture
def marked(scene: Scene) -> Scene:
    """Sessions have run, each of them confined."""
    paths.session_state_home()
    remember_written(str(scene.home / "project"))
    return scene


def test_a_file_that_no_session_could_write_is_the_users_however_new(marked: Scene) -> None:
    rewritten(marked)
    assert is_out_of_reach(str(marked.settings))
    remember_written(str(marked.settings))  # by --allow-write FILE
    settle(marked.home)
    rewritten(marked)
    assert not is_out_of_reach(str(marked.settings)), "the twin"


@pytest.mark.parametrize("open_folder", [".nvm", ".nvm/versions", "", "/"])
def test_an_upgrade_counts_unless_a_session_could_write_the_toolchain(marked: Scene, open_folder: str) -> None:
    node = marked.home / ".nvm" / "versions" / "node" / "v2" / "bin" / "node"
    node.parent.mkdir(parents=True)
    node.write_text("2")
    link = marked.home / "bin" / "node"
    link.parent.mkdir()
    link.symlink_to(node)
    assert untrusted_place(str(link), {}) is None
    settle(marked.home)
    opened = os.path.join(str(marked.home), open_folder).rstrip("/") or "/"
    remember_written(opened)
    assert untrusted_place(str(link), {}) is None, "it is older than the session"
    settle(marked.home)
    node.write_text("planted")
    place = marked.home / ".nvm"
    assert untrusted_place(str(link), {}) == str(place)
    assert untrusted_place(str(link), {"NVM_DIR": str(place / "versions")}) == str(place)
    trust_place(place)
    assert untrusted_place(str(link), {}) is None
    node.write_text("an upgrade outside of any session")
    assert untrusted_place(str(link), {}) is None
    settle(marked.home)
    remember_written(opened)
    assert untrusted_place(str(link), {}) == str(place), "newer than the user's trust, and a session could write it"
    trust_place(place)
    settle(marked.home)
    remember_written(opened)
    assert untrusted_place(str(link), {}) is None, "unchanged since then"


def test_a_second_name_is_written_by_sessions_too(marked: Scene) -> None:
    (marked.home / "project").mkdir()
    (marked.home / "project" / "own").hardlink_to(marked.settings)
    assert not is_out_of_reach(str(marked.settings))
    marked.settings.unlink()
    marked.settings.write_text("new")
    assert is_out_of_reach(str(marked.settings)), "the twin"


def test_second_names_in_the_same_folder_are_as_safe_as_the_first(marked: Scene) -> None:
    """rustup makes its programs so."""
    cargo = marked.home / ".cargo" / "bin" / "cargo"
    cargo.parent.mkdir(parents=True)
    cargo.write_text("new")
    (cargo.parent / "rustc").hardlink_to(cargo)
    assert untrusted_place(str(cargo), {}) is None
    (marked.home / "elsewhere").hardlink_to(cargo)
    assert untrusted_place(str(cargo), {}) == str(cargo.parent)


def test_a_link_into_a_project_is_no_users_file(marked: Scene) -> None:
    (marked.home / "project").mkdir()
    (marked.home / "project" / "npmrc").write_text("")
    (marked.home / ".npmrc").symlink_to("project/npmrc")
    assert not is_out_of_reach(str(marked.home / ".npmrc"))


def as_nobody(call: Callable[[str], bool], path: str) -> bool:
    """What *call* says in a process without rights."""
    child = os.fork()
    if child == 0:
        status = 2
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            status = int(call(path))
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 1)
    return status == 1


def test_a_file_of_the_system_counts_however_new_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    (state / "netsandbox" / "sessions").mkdir(parents=True)  # at an unknown time: no file is old enough
    assert as_nobody(is_out_of_reach, "/etc/passwd")
    assert as_nobody(is_old_program, "/bin/sh")
    if os.geteuid() == 0:
        assert not is_out_of_reach("/etc/passwd"), "a session of root's can write it"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make files of another user")
@pytest.mark.parametrize("which", ["file", "folder", "above"])
def test_a_file_of_the_system_that_anybody_may_change_does_not(
    monkeypatch: pytest.MonkeyPatch, which: str, short_tmp: Path
) -> None:
    file = short_tmp / "above" / "folder" / "file"
    file.parent.mkdir(parents=True)
    file.write_text("")
    short_tmp.chmod(0o755)
    state = short_tmp / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    (state / "netsandbox" / "sessions").mkdir(parents=True)
    wide = {"file": file, "folder": file.parent, "above": file.parent.parent}[which]
    wide.chmod(stat.S_IMODE(wide.stat().st_mode) | 0o022)
    assert not as_nobody(is_out_of_reach, str(file))


@pytest.mark.parametrize(
    ("head", "wanted"),
    [
        (b"\x7fELF", ""),
        (b"", ""),
        (b"#!/bin/sh\nnode", "/bin/sh"),
        (b"#! /bin/sh -e\n", "/bin/sh"),
        (b"#!/usr/bin/env node\n", "node"),
        (b"#!/usr/bin/env -S A=1 node --flag\n", "node"),
        (b"#!/usr/bin/env\n", ""),
        (b"#!", ""),
    ],
)
def test_what_starts_a_script(head: bytes, wanted: str, tmp_path: Path) -> None:
    assert interpreter_in(head) == wanted
    (tmp_path / "script").write_bytes(head)
    assert interpreter(str(tmp_path / "script")) == wanted
    assert interpreter(str(tmp_path / "none")) == ""


@given(st.binary() | st.binary().map(lambda rest: b"#!" + rest))
def test_whatever_a_script_begins_with(head: bytes) -> None:
    assert os.fsencode(interpreter_in(head)) in head
