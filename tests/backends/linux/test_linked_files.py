from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netsandbox.backends.linux import linked_files
from netsandbox.backends.linux.linked_files import own_copies
from netsandbox.backends.linux.private_folders import PrivateFolders
from netsandbox.errors import HostError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project/.venv/lib/python3/site-packages/p").mkdir(parents=True)
    (tmp_path / "cache").mkdir()
    return tmp_path / "project"


def cached(project: Path, name: str, text: str = "honest") -> Path:
    """A file of a cache that the project has at *name* too."""
    original = project.parent / "cache" / name.replace("/", "-")
    original.write_text(text)
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).hardlink_to(original)
    return original


def broken(project: Path) -> list[str]:
    return own_copies([str(project)], str(project.parent / "note"))


def test_a_file_with_a_name_outside_becomes_a_copy_with_its_rights_and_times(project: Path) -> None:
    original = cached(project, "node_modules/p/tool.js")
    original.chmod(0o755)
    os.utime(original, ns=(10**18, 10**18 + 7))
    (line,) = broken(project)
    assert line.startswith("1 files in ")
    copy = project / "node_modules/p/tool.js"
    assert not copy.samefile(original)
    assert (copy.read_text(), copy.stat().st_mode, copy.stat().st_mtime_ns) == ("honest", 0o100755, 10**18 + 7)
    assert (original.stat().st_nlink, os.listdir(copy.parent)) == (1, ["tool.js"])
    assert broken(project) == []


def test_names_that_all_lie_in_the_project_stay_links(project: Path) -> None:
    (project / "target").mkdir()
    (project / "target/a").write_text("built")
    (project / "target/b").hardlink_to(project / "target/a")
    assert broken(project) == []
    assert (project / "target/a").samefile(project / "target/b")


def test_a_file_that_others_own_and_nobody_else_may_write_stays(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = cached(project, "a")
    monkeypatch.setattr(os, "geteuid", lambda: original.stat().st_uid + 1)
    assert broken(project) == []
    original.chmod(0o666)
    assert len(broken(project)) == 1, "the twin: this one the session could write"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EIO])
def test_a_copy_that_fails_is_an_error_and_leaves_nothing_behind(
    project: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    original = cached(project, "sub/a")

    def fails(*_: Any) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "copy_file_range", fails)
    with pytest.raises(HostError, match=os.strerror(number)):
        broken(project)
    assert os.listdir(project / "sub") == ["a"]
    assert not (project.parent / "note").exists(), "the next session tries again"
    assert (project / "sub/a").samefile(original)


def test_it_copies_where_the_kernel_cannot_clone(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached(project, "a", "x" * 3_000_000)

    def fails(*_: Any) -> int:
        raise OSError(errno.EXDEV, "")

    monkeypatch.setattr(os, "copy_file_range", fails)
    broken(project)
    assert (project / "a").read_text() == "x" * 3_000_000


def test_a_link_on_the_way_is_not_followed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another session of the project exchanges a folder after the walk."""
    original = cached(project, "sub/a")
    outside = project.parent / "outside"
    outside.mkdir()
    (outside / "a").hardlink_to(original)
    found = linked_files.LinkedFiles([str(project)])
    (project / "sub").rename(project / "moved")
    (project / "sub").symlink_to(outside)
    monkeypatch.setattr(linked_files, "LinkedFiles", lambda _: found)
    with pytest.raises(HostError, match="second name"):
        broken(project)
    assert (outside / "a").samefile(original)


def test_a_file_that_is_gone_meanwhile_is_no_error(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached(project, "sub/a")
    found = linked_files.LinkedFiles([str(project)])
    (project / "sub/a").unlink()
    monkeypatch.setattr(linked_files, "LinkedFiles", lambda _: found)
    broken(project)


def test_a_project_with_too_many_files_is_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linked_files, "MAX_FILES", 2)
    for name in "abcd":
        (project / name).touch()
    (line,) = broken(project)
    assert "more than 2 files" in line
    assert not (project.parent / "note").exists()


CHANGES = {
    "a package of Python": ".venv/lib/python3/site-packages/new.py",
    "a package of node": "node_modules/new",
    "the first environment of a member": "member/.venv/pyvenv.cfg",
    "the first modules of a member": "member/node_modules/p",
    "an install by bun": "bun.lock",
    "an install by pnpm": "node_modules/.modules.yaml",
    "a package of pnpm": "node_modules/.pnpm/p@1/x",
}


@pytest.mark.parametrize("name", CHANGES.values(), ids=CHANGES)
def test_what_an_install_changes_is_noticed(project: Path, tmp_path: Path, name: str) -> None:
    for known in ("member/package.json", "node_modules/.pnpm/q@1/x"):
        (project / known).parent.mkdir(parents=True, exist_ok=True)
        (project / known).touch()
    folders = PrivateFolders(str(tmp_path), str(project))
    note = folders.links_to_break
    assert note is not None
    own_copies([str(project)], note)
    assert folders.links_to_break is None, "the twin: nothing has changed"
    (project / "src.py").touch()
    assert folders.links_to_break is None, "work on the project is no install"
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).touch()
    assert folders.links_to_break == note


def test_a_note_holds_for_a_day_and_a_broken_one_for_nothing(project: Path, tmp_path: Path) -> None:
    folders = PrivateFolders(str(tmp_path), str(project))
    note = folders.links_to_break
    assert note is not None
    own_copies([str(project)], note)
    now = os.stat(note).st_mtime
    for age in (-3600, 25 * 3600):
        os.utime(note, (now - age, now - age))
        assert folders.links_to_break == note
    for data in (b"", b"x", b"/a\0" * 3, b"\0"):
        Path(note).write_bytes(data)
        assert folders.links_to_break == note


def test_too_many_folders_of_packages_are_no_reason_to_look_at_fewer(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linked_files, "MAX_MARKS", 10)
    for number in range(12):
        (project / f"pad{number}" / "node_modules").mkdir(parents=True)
    folders = PrivateFolders(str(tmp_path), str(project))
    own_copies([str(project)], str(folders.links_to_break))
    assert folders.links_to_break is not None


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("io"), st.integers(0, 2)), max_size=12))
def test_no_file_inside_has_a_name_outside_and_no_content_changes(
    tmp_path_factory: pytest.TempPathFactory, names: list[tuple[int, str, int]]
) -> None:
    """Whatever names files have: *names* are the file, whether the name is inside or outside, and its folder."""
    top = tmp_path_factory.mktemp("links")
    content = {}
    first: dict[int, Path] = {}
    for number, (file, side, folder) in enumerate(names):
        path = top / side / str(folder) / str(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        if file in first:
            path.hardlink_to(first[file])
        else:
            first[file] = path
            path.write_text(str(file))
        content[path] = str(file)
    (top / "i").mkdir(exist_ok=True)
    own_copies([str(top / "i")], str(top / "note"))
    outside = {path.stat().st_ino for path in content if path.parts[-3] == "o"}
    assert outside.isdisjoint(path.stat().st_ino for path in content if path.parts[-3] == "i")
    assert {path: path.read_text() for path in content} == content
    note = [top / "note"] if any((top / "i").iterdir()) else []
    assert sorted(path for path in top.rglob("*") if path.is_file()) == sorted([*content, *note])
