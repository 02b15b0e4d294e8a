"""The files that sessions left in a private home: found by time, without links, caches and empty files."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from netsandbox.backends.linux import private_home
from netsandbox.backends.linux.private_home import PrivateHome


def put(folder: Path, name: str, text: str = "x") -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_files_are_named_as_the_session_saw_them(tmp_path: Path) -> None:
    for name in (".npmrc", ".config/gh/hosts.yml", ".cache/big", ".npm/_cacache/x", ".bash_history"):
        put(tmp_path, name)
    put(tmp_path, ".gitconfig", "")
    assert PrivateHome(str(tmp_path), "/h/ann").written() == ("/h/ann/.config/gh/hosts.yml", "/h/ann/.npmrc")


def test_only_what_changed_since(tmp_path: Path) -> None:
    put(tmp_path, "old")
    found = PrivateHome(str(tmp_path), "/h")
    assert found.written(since=time.time() + 60) == ()
    assert found.written(since=time.time() - 60) == ("/h/old",)


def test_links_are_named_and_never_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    put(outside, "secret")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "way").symlink_to(outside)
    (inside / "round").symlink_to(inside)
    assert PrivateHome(str(inside), "/h").written() == ("/h/round", "/h/way")


def test_a_link_to_the_hosts_file_of_that_name_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").symlink_to("/h/.gitconfig")
    (tmp_path / ".other").symlink_to("/h/.gitconfig")
    assert PrivateHome(str(tmp_path), "/h").written() == ("/h/.other",)


def test_a_link_to_a_cache_of_ours_is_not_listed(tmp_path: Path) -> None:
    """The broker backend makes these."""
    for inside in (tmp_path / "homes/shop-0a/home", tmp_path / "homes/shared/fresh/0/data/home"):
        inside.mkdir(parents=True)
        (inside / ".npm").symlink_to(tmp_path / "homes/shop-0a/caches/0b/0/data")
        (inside / ".pnpm").symlink_to(tmp_path / "homes/shop-0a/caches/0c/0/data")
        (inside / ".other").symlink_to(tmp_path / "else/homes/x")
        assert PrivateHome(str(inside), "/h").written() == ("/h/.other",)


def test_a_walk_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_home, "MAX_WALKED", 10)
    for number in range(30):
        put(tmp_path, f"f{number}")
    assert len(PrivateHome(str(tmp_path), "/h").written()) == 10


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    put(tmp_path, "a")
    put(tmp_path, "closed/b")
    os.chmod(tmp_path / "closed", 0)
    try:
        assert "/h/a" in PrivateHome(str(tmp_path), "/h").written()
    finally:
        os.chmod(tmp_path / "closed", 0o700)
    assert PrivateHome(str(tmp_path / "none"), "/h").written() == ()


def test_a_file_is_read_without_following_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "inside"
    put(inside, "a/b", "content")
    put(tmp_path, "secret")
    (inside / "link").symlink_to(tmp_path / "secret")
    (inside / "way").symlink_to(tmp_path)
    found = PrivateHome(os.path.realpath(inside), "/h")
    assert found.read("/h/a/b") == b"content"
    for name in ("/h/link", "/h/way/secret", "/h/../secret", "/h/a", "/h", "/other/a/b", "/h/none"):
        with pytest.raises(OSError):  # noqa: PT011 (each has its own number)
            found.read(name)
    monkeypatch.setattr(private_home, "MAX_KEPT", 3)
    with pytest.raises(OSError, match="more than"):
        found.read("/h/a/b")


def test_clearing_removes_the_folder_and_no_target_of_a_link(tmp_path: Path) -> None:
    put(tmp_path, "inside/a")
    put(tmp_path, "outside/b")
    (tmp_path / "inside/link").symlink_to(tmp_path / "outside")
    PrivateHome(str(tmp_path / "inside"), "/h").clear()
    assert not (tmp_path / "inside").exists()
    assert (tmp_path / "outside/b").exists()
