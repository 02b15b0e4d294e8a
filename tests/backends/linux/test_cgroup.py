"""A cgroup of the session's own. Where this machine gives one, it is a real one; otherwise folders with files stand for
it, and what the kernel does with them was tried in a virtual machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.backends.linux import cgroup
from netsandbox.backends.linux.cgroup import Cgroup, contents, find_cgroup, sweep
from netsandbox.errors import HostError

LIMITS = (("memory", (100 << 20) + 5), ("processes", 30), ("cpu", 50), ("files", 9))


def tree(folder: Path, controllers: str = "cpu memory pids", enabled: str = "cpu memory pids") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("controllers", controllers), ("subtree_control", enabled), ("procs", "")):
        (folder / f"cgroup.{name}").write_text(content)
    return folder


def test_what_the_kernels_files_must_say() -> None:
    assert contents(dict(LIMITS)) == {"memory.max": str(100 << 20), "pids.max": "32", "cpu.max": "50000 100000"}


def test_a_limit_that_the_kernel_does_not_show_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that keep what is written to them are a kernel that holds the limit; those that do not are the twin."""
    held = Cgroup("x", LIMITS, str(tree(tmp_path)))
    made = os.mkdir

    def mkdir(path: str) -> None:
        made(path)
        for name in (*contents(dict(LIMITS)), "cgroup.procs", "memory.swap.max"):
            Path(path, name).write_text("")

    monkeypatch.setattr(os, "mkdir", mkdir)
    held.enter(os.getpid())
    assert held.folder == f"{tmp_path}/netsandbox-x"
    assert Path(held.folder, "cgroup.procs").read_text() == str(os.getpid())
    assert Path(held.folder, "memory.swap.max").read_text() == "0"
    Path(held.folder, "pids.max").write_text("max")
    with pytest.raises(OSError, match=r"pids\.max has 'max'"):
        held._verify()
    Path(held.folder, "cpu.max").unlink()
    Path(held.folder, "pids.max").write_text("32")
    with pytest.raises(OSError, match="no controller"):
        held._verify()


def test_a_folder_that_is_no_cgroup_is_an_error_with_advice(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="loginctl enable-linger"):
        Cgroup("x", LIMITS, str(tree(tmp_path))).enter(os.getpid())


def find_in(base: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> Cgroup | None:
    monkeypatch.setattr(cgroup, "mount_point", lambda: str(base))
    monkeypatch.setattr(cgroup, "manager_of", lambda uid: None)
    monkeypatch.setattr(cgroup, "own_cgroup", lambda pid: place)
    return find_cgroup("x", LIMITS)


def test_the_nearest_cgroup_with_the_controllers_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path)
    tree(tmp_path / "a", enabled="memory pids cpu io")
    (tmp_path / "a/b").mkdir()  # without any file of ours to write
    found = find_in(tmp_path, "/a/b", monkeypatch)
    assert found is not None
    assert found.folder == f"{tmp_path}/a"
    twin = find_in(tmp_path, "/", monkeypatch)
    assert twin is not None
    assert twin.folder == str(tmp_path)


def test_without_a_cgroup_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_in(tmp_path / "missing", "/a", monkeypatch) is None
    monkeypatch.setattr(cgroup, "mount_point", lambda: None)
    assert find_cgroup("x", LIMITS) is None


@pytest.mark.parametrize(("controllers", "is_found"), [("cpu memory pids", True), ("memory pids", False)])
def test_a_manager_must_own_the_controllers(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    controllers: str,
    is_found: bool,
) -> None:
    tree(tmp_path / "user", controllers)
    monkeypatch.setattr(cgroup, "mount_point", lambda: str(tmp_path))
    monkeypatch.setattr(cgroup, "manager_of", lambda uid: ("/run/socket", "/user"))
    assert (find_cgroup("x", LIMITS) is not None) == is_found


def test_what_a_killed_session_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    for name in ("netsandbox-dead", "netsandbox-live/child", "other"):
        (tmp_path / name).mkdir(parents=True)
    sweep(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["netsandbox-live", "other"]


def test_breaches_and_usage_are_read(tmp_path: Path) -> None:
    held = Cgroup("x", LIMITS, str(tmp_path))
    assert (held.breaches(), held.usage()) == ([], {})
    (tmp_path / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
    (tmp_path / "pids.events").write_text("max 0\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\n")
    (tmp_path / "memory.current").write_text("4096\n")
    assert held.breaches() == ["memory"]
    assert held.usage() == {"cpu_seconds": 1.5, "memory_bytes": 4096}


def test_a_made_cgroup_is_removed_at_the_end(tmp_path: Path) -> None:
    held = Cgroup("x", (), str(tmp_path))
    held._make = lambda pid: None  # type: ignore[method-assign]
    held.folder = str(tmp_path / "netsandbox-x")
    os.mkdir(held.folder)
    held._is_made = True
    held.close()
    assert os.listdir(tmp_path) == []
    held.close()
