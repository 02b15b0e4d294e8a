"""Calls about files, of this very process: each goes on, whatever it points at, and what it does is noted."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netsandbox.backends.namespaces import file_watch, remote_process
from netsandbox.backends.namespaces.file_calls import file_calls
from netsandbox.backends.namespaces.file_watch import FileWatch
from netsandbox.backends.namespaces.seccomp_notify import TrappedCall
from netsandbox.backends.namespaces.watched_paths import WatchedPaths
from netsandbox.policy.path_folding import EntryLimits

NUMBERS = {call.name: number for number, call in file_calls(os.uname().machine).items()}
HERE = 0xFFFFFF9C  # AT_FDCWD


class Listener:
    def __init__(self) -> None:
        self.gone_on: list[int] = []
        self.valid = True

    def is_valid(self, call: TrappedCall) -> bool:
        return self.valid

    def let_go_on(self, call: TrappedCall) -> None:
        self.gone_on.append(call.id)

    def exe_of(self, call: TrappedCall) -> str:
        return "/bin/probe"


class Scene:
    """`outside` is watched; in it are `secret`, which is hidden, and `open`, where every session may write."""

    def __init__(self, outside: Path, log: Any) -> None:
        self.outside, self.log, self.listener = outside, log, Listener()
        for name in ("secret", "open", "folder"):
            (outside / name).mkdir()
        (outside / "file").write_text("x")
        places = WatchedPaths((f"{outside}/open",), (f"{outside}/secret",), EntryLimits("/home/me"))
        self.watch = FileWatch(self.listener, log, places)  # type: ignore[arg-type]
        self._calls = 0
        self._closed = False

    def call(self, name: str, *arguments: int | bytes | Path, pid: int | None = None) -> None:
        """Paths are put into memory, as a program has them."""
        texts = [bytes(each) if isinstance(each, Path) else each for each in arguments]
        kept = [ctypes.create_string_buffer(each) if isinstance(each, bytes) else each for each in texts]
        numbers = [ctypes.addressof(each) if isinstance(each, ctypes.Array) else each for each in kept]
        self.raw(NUMBERS[name], *numbers, pid=pid)

    def raw(self, number: int, *arguments: int, pid: int | None = None) -> None:
        self._calls += 1
        six = [value & (1 << 64) - 1 for value in (*arguments, 0, 0, 0, 0, 0, 0)[:6]]
        who = os.getpid() if pid is None else pid
        call = TrappedCall(struct.pack("=QIIiIQ6Q", self._calls, who, 0, number, 0, 0, *six))
        assert self.watch.takes(call)
        self.watch.serve(call)
        assert self.listener.gone_on[-1] == self._calls

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.watch.close()

    @property
    def noted(self) -> list[tuple[str, str]]:
        return [(each["operation"], os.path.relpath(each["path"], self.outside)) for each in self.log.records]


@pytest.fixture
def scene(tmp_path: Path, log: Any) -> Iterator[Scene]:
    made = Scene(tmp_path, log)
    yield made
    made.close()


def test_what_is_opened_is_noted_by_what_becomes_of_it(scene: Scene) -> None:
    top = scene.outside
    scene.call("openat", HERE, top / "file", os.O_RDONLY)
    scene.call("openat", HERE, top / "open/x", os.O_WRONLY | os.O_CREAT)
    assert scene.log.records == []
    scene.call("openat", HERE, top / "file", os.O_RDWR)
    scene.call("openat", HERE, top / "new", os.O_WRONLY | os.O_CREAT)
    scene.call("openat", HERE, top / "missing/new", os.O_WRONLY | os.O_CREAT)
    scene.call("openat", HERE, top / "folder", os.O_TMPFILE | os.O_WRONLY)
    how = struct.pack("=QQQ", os.O_WRONLY | os.O_TRUNC, 0, 0)
    (top / "second").write_text("x")
    scene.call("openat2", HERE, top / "second", how, len(how))
    assert scene.noted == [
        ("change", "file"),
        ("make", "new"),
        ("make", "missing/new"),
        ("folder", "folder"),
        ("change", "second"),
    ]
    first = scene.log.records[0]
    assert (first["event"], first["door"], first["call"]) == ("file", "seccomp", "openat")
    assert (first["pid"], first["exe"]) == (os.getpid(), "/bin/probe")
    assert "verdict" not in first
    assert "permitted" not in first


@pytest.mark.skipif("open" not in NUMBERS, reason="this machine has no such calls, only those with a descriptor")
def test_the_calls_without_a_descriptor_are_read_as_well(scene: Scene) -> None:
    top = scene.outside
    scene.call("open", top / "a", os.O_WRONLY | os.O_CREAT)
    scene.call("creat", top / "b")
    scene.call("mkdir", top / "c")
    scene.call("rename", top / "file", top / "d")
    scene.call("link", top / "file", top / "e")
    scene.call("symlink", top / "file", top / "f")
    scene.call("unlink", top / "g")
    scene.call("rmdir", top / "h")
    scene.call("mknod", top / "i")
    scene.call("chmod", top / "folder")
    scene.call("lchown", top / "file")
    made = [("make", name) for name in ("a", "b")]
    named = [("make", name) for name in ("file", "d", "e", "f", "g", "h", "i")]
    assert scene.noted == [*made, ("folder", "c"), *named, ("folder", "folder"), ("change", "file")]


def test_names_are_noted_where_they_are_made_and_where_they_go(scene: Scene) -> None:
    top = scene.outside
    folder = os.open(top / "folder", os.O_RDONLY)
    try:
        scene.call("mkdirat", folder, b"sub")
        scene.call("renameat2", folder, b"one", HERE, top / "two", 0)
        scene.call("linkat", HERE, top / "file", folder, b"linked", 0)
        scene.call("symlinkat", b"/etc/passwd", folder, b"link")
        scene.call("unlinkat", folder, b"gone", 0)
        scene.call("mknodat", folder, b"fifo", 0o10600)
    finally:
        os.close(folder)
    made = [("make", f"folder/{name}") for name in ("linked", "link", "gone", "fifo")]
    assert scene.noted == [("folder", "folder/sub"), ("make", "folder/one"), ("make", "two"), *made]


def test_a_folder_that_is_there_is_not_made(scene: Scene) -> None:
    scene.call("mkdirat", HERE, scene.outside / "folder")
    assert scene.log.records == []


def test_changes_in_place_follow_links_as_the_call_does(scene: Scene) -> None:
    top = scene.outside
    (top / "link").symlink_to("file")
    scene.call("truncate", top / "link", 0)
    scene.call("fchownat", HERE, top / "link", 0, 0, 0x100)
    scene.call("utimensat", HERE, top / "missing", 0, 0)
    scene.call("utimensat", 5, 0, 0, 0)  # of a descriptor
    assert scene.noted == [("change", "file"), ("change", "link")]


def test_relative_paths_begin_where_the_caller_is(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(scene.outside / "folder")
    scene.call("openat", HERE, b"../a/./../b//c/", os.O_WRONLY | os.O_CREAT)
    (scene.outside / "b").mkdir()
    scene.call("openat", HERE, b".././b//./c", os.O_WRONLY | os.O_CREAT)
    scene.call("openat", -100, b"d", os.O_WRONLY | os.O_CREAT)  # as a program has it in a whole register
    noted = [("make", "b/c"), ("make", "folder/d")]
    assert scene.noted == noted, "what leads through a folder that is missing leads nowhere"


def test_links_on_the_way_lead_to_the_true_path(scene: Scene) -> None:
    top = scene.outside
    (top / "way").symlink_to(top / "folder")
    (top / "dangling").symlink_to("folder/not-yet")
    (top / "round").symlink_to("round")
    scene.call("openat", HERE, top / "way/x", os.O_WRONLY | os.O_CREAT)
    scene.call("openat", HERE, top / "dangling", os.O_WRONLY | os.O_CREAT)
    scene.call("openat", HERE, top / "round", os.O_WRONLY | os.O_CREAT)
    scene.call("openat", HERE, top / "file/x", os.O_WRONLY | os.O_CREAT)
    assert scene.noted == [("make", "folder/x"), ("make", "folder/not-yet")]


def test_a_secret_is_noted_once_for_each_thing_that_is_tried(scene: Scene) -> None:
    top = scene.outside
    (top / "way").symlink_to(top / "secret")
    for path in (top / "secret/id", top / "secret/other", top / "way/id", top / "secret"):
        scene.call("openat", HERE, path, os.O_RDONLY)
    scene.call("openat", HERE, top / "secret/new", os.O_WRONLY | os.O_CREAT)
    assert scene.noted == [("read", "secret/id"), ("make", "secret/new")]
    assert {record["place"] for record in scene.log.records} == {f"{top}/secret"}


def test_a_path_that_was_harmless_is_not_taken_for_one_that_is_written(scene: Scene) -> None:
    for flags in (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY, os.O_RDONLY):
        scene.call("openat", HERE, scene.outside / "file", flags)
    assert scene.noted == [("change", "file")]


def test_what_the_user_may_not_write_either_is_marked(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path != f"{scene.outside}/folder")
    scene.call("openat", HERE, scene.outside / "folder/a/b", os.O_WRONLY | os.O_CREAT)
    scene.call("openat", HERE, scene.outside / "c", os.O_WRONLY | os.O_CREAT)
    assert [record.get("permitted") for record in scene.log.records] == [False, None]


def test_what_fails_for_the_kernel_too_is_not_noted(scene: Scene) -> None:
    unmapped = ((1 << 64) - 8, 8, 0xFFFFFFFF81000000)
    for address in unmapped:
        scene.raw(NUMBERS["openat"], HERE, address, os.O_WRONLY | os.O_CREAT)
        scene.raw(NUMBERS["renameat2"], HERE, address, HERE, address)
    how = ctypes.create_string_buffer(bytes(scene.outside / "x"))
    scene.raw(NUMBERS["openat2"], HERE, ctypes.addressof(how), unmapped[0], 24)
    scene.call("openat", HERE, b"/" + b"x/" * 3000, os.O_WRONLY | os.O_CREAT)
    scene.call("openat", HERE, b"", os.O_WRONLY | os.O_CREAT)
    scene.call("openat", 1 << 20, b"x", os.O_WRONLY | os.O_CREAT)
    reader, writer = os.pipe()
    scene.call("openat", reader, b"x", os.O_WRONLY | os.O_CREAT)
    os.close(reader)
    os.close(writer)
    dead = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(dead, 0)
    scene.call("openat", HERE, b"/srv/x", os.O_WRONLY | os.O_CREAT, pid=dead)
    scene.close()
    assert scene.log.records == []


def test_devices_and_processes_are_not_followed(scene: Scene) -> None:
    for path in (b"/dev/null", b"/proc/self/comm", b"//proc/self/comm", b"/proc/self/cwd/x", b"/dev/fd/1"):
        scene.call("openat", HERE, path, os.O_WRONLY | os.O_CREAT)
    assert [each for each in scene.log.records if not each["path"].startswith("/proc/")] == []


def test_a_caller_that_cannot_be_looked_into_is_counted_and_goes_on(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*arguments: object) -> bytes:
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr(remote_process, "path_text", refused)
    scene.call("openat", HERE, b"/srv/x", os.O_WRONLY)
    scene.call("renameat2", HERE, b"/srv/x", HERE, b"/srv/y")
    scene.close()
    assert scene.log.records == [
        {"event": "file", "door": "seccomp", "count": 3, "detail": "the path could not be found out"}
    ]


def test_a_folder_too_deep_for_one_path_is_counted(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(scene.outside / "folder")
    scene.call("openat", HERE, b"x/" * 2040 + b"x", os.O_WRONLY | os.O_CREAT)

    def too_long(*arguments: object) -> bytes:
        raise OSError(errno.ENAMETOOLONG, "File name too long")

    monkeypatch.setattr(os, "readlink", too_long)
    scene.call("openat", HERE, b"x", os.O_WRONLY | os.O_CREAT)
    scene.close()
    assert [(record["count"], record["detail"]) for record in scene.log.records] == [
        (2, "the path could not be found out")
    ]


def test_whatever_goes_wrong_with_us_the_call_goes_on(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_watch, "is_within", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        scene.call("openat", HERE, scene.outside / "x", os.O_WRONLY | os.O_CREAT)
    assert scene.listener.gone_on == [1]


@pytest.mark.attack(118)
def test_118_what_was_read_of_a_caller_that_is_gone_is_not_noted(scene: Scene) -> None:
    """Its number may be another process's by now, one of the host's too."""
    scene.listener.valid = False
    scene.call("openat", HERE, scene.outside / "x", os.O_WRONLY | os.O_CREAT)
    assert scene.log.records == []
    scene.listener.valid = True
    scene.call("openat", HERE, scene.outside / "x", os.O_WRONLY | os.O_CREAT)
    assert scene.noted == [("make", "x")]


@pytest.mark.attack(192)
def test_only_short_paths_are_remembered_as_harmless(scene: Scene) -> None:
    scene.call("openat", HERE, b"/usr", os.O_RDONLY)
    scene.call("openat", HERE, b"/usr" + b"/." * 1000, os.O_RDONLY)
    assert scene.watch._known == {b"/usr"}


def test_many_harmless_paths_are_remembered_and_their_number_is_bounded(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound on the length of a path was once the bound on their number too."""
    for number in range(file_watch.MAX_KNOWN_PATH + 1):
        scene.watch._found(None, "open", b"/usr/%d" % number, "/usr", file_watch.READ)  # type: ignore[arg-type]
    assert len(scene.watch._known) == file_watch.MAX_KNOWN_PATH + 1
    monkeypatch.setattr(file_watch, "MAX_KNOWN", 2)
    scene.watch._found(None, "open", b"/usr", "/usr", file_watch.READ)  # type: ignore[arg-type]
    assert scene.watch._known == {b"/usr"}


def test_a_flood_of_paths_is_bounded_and_said_to_be(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        scene.call("openat", HERE, scene.outside / f"folder/{number}", os.O_WRONLY | os.O_CREAT)
    assert len(scene.log.records) == 17
    assert scene.noted[-1] == ("many", "folder")
    monkeypatch.setattr(scene.watch._notes[True], "_most", 17)
    scene.call("openat", HERE, scene.outside / "more", os.O_WRONLY | os.O_CREAT)
    scene.close()
    assert scene.log.records[-1]["detail"] == "more paths than are listed"
    assert scene.log.records[-1]["count"] == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.sampled_from(sorted(NUMBERS.values())),
    st.lists(st.integers(0, (1 << 64) - 1) | st.sampled_from([0, HERE, 1, 1 << 20]), min_size=6, max_size=6),
)
def test_no_arguments_keep_a_call_waiting(scene: Scene, number: int, arguments: list[int]) -> None:
    scene.raw(number, *arguments)
