"""Protected files before and after a session: what differs is named, what was only touched is not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from netsandbox.backends.broker import protected_files
from netsandbox.backends.broker.protected_files import ProtectedFiles


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hooks/deep").mkdir(parents=True)
    for name in ("hooks/a", "hooks/deep/b", "settings"):
        (tmp_path / name).write_text("before")
    (tmp_path / "link").symlink_to("settings")
    return tmp_path


def tops(folder: Path) -> list[str]:
    return [f"{folder}/{name}" for name in ("hooks", "settings", "link", "missing")]


def changed(before: ProtectedFiles) -> list[str]:
    return before.put_back(lambda _: False, lambda _: None)[0]


CHANGES: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "content": (lambda top: (top / "hooks/a").write_text("after!"), ["hooks/a"]),
    "mode": (lambda top: (top / "hooks/a").chmod(0o777), ["hooks/a"]),
    "removed": (lambda top: (top / "hooks/deep/b").unlink(), ["hooks/deep/b"]),
    "new": (lambda top: (top / "hooks/new").write_text(""), ["hooks/new"]),
    "new folder": (lambda top: (top / "missing/a/b").mkdir(parents=True), ["missing"]),
    "target": (lambda top: ((top / "link").unlink(), (top / "link").symlink_to("hooks/a")), ["link"]),
    "a link instead": (
        lambda top: ((top / "settings").rename(top / "x"), (top / "settings").symlink_to("x")),
        ["settings"],
    ),
    "touched": (lambda top: os.utime(top / "settings", (1, 1)), []),
    "replaced by the same": (
        lambda top: ((top / "x").write_text("before"), (top / "x").replace(top / "settings")),
        [],
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_differs_is_named(folder: Path, change: str) -> None:
    before = ProtectedFiles(tops(folder))
    assert changed(before) == []
    act, names = CHANGES[change]
    act(folder)
    assert changed(before) == [f"{folder}/{name}" for name in names]


def test_a_large_file_is_compared_by_its_times(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protected_files, "MAX_COMPARED", 2)
    before = ProtectedFiles(tops(folder))
    assert changed(before) == []
    (folder / "settings").write_text("after!")
    os.utime(folder / "settings", (1, 1))
    assert changed(before) == [f"{folder}/settings"]


def test_what_was_not_read_for_its_size_is_compared_by_its_times(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protected_files, "MAX_READ", 1)
    before = ProtectedFiles(tops(folder))
    assert changed(before) == []
    for name in ("hooks/a", "hooks/deep/b"):
        (folder / name).write_text("after!")
        os.utime(folder / name, (1, 1))
    assert changed(before) == [f"{folder}/hooks/a", f"{folder}/hooks/deep/b"]


@pytest.mark.attack(272)
def test_many_new_files_hide_neither_a_changed_nor_a_new_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What sorts behind many others was not looked at."""
    monkeypatch.setattr(protected_files, "MAX_NEW", 8)
    before = ProtectedFiles(tops(folder))
    for number in range(50):
        (folder / f"hooks/0{number}").write_text("")
    (folder / "hooks/z").write_text("planted")
    (folder / "hooks/deep/b").write_text("after!")
    found, left = before.put_back(lambda _: False, lambda path: os.rename(path, folder / f"taken-{Path(path).name}"))
    assert (found, left) == ([f"{folder}/hooks/deep/b", f"{folder}/hooks"], [])
    assert sorted(os.listdir(folder / "hooks")) == ["a", "deep"]
    assert (folder / "hooks/deep/b").read_text() == "before"
    assert (folder / "taken-hooks/z").read_text() == "planted"


def test_a_folder_with_too_many_names_is_named_if_it_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protected_files, "MAX_KNOWN", 5)
    for number in range(9):
        (folder / f"hooks/0{number}").write_text("")
    before = ProtectedFiles(tops(folder))
    nothing = before.put_back(lambda _: False, lambda _: None)
    (folder / "hooks/z").write_text("planted")
    assert (nothing, before.put_back(lambda _: False, lambda _: None)) == (([], []), ([], [f"{folder}/hooks"]))


def test_whether_anything_exists_is_known(folder: Path) -> None:
    assert ProtectedFiles(tops(folder)).exist
    assert not ProtectedFiles([f"{folder}/missing"]).exist
