"""The folders that sessions write instead of the host's."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from netsandbox.backends.linux import private_folders
from netsandbox.backends.linux.private_folders import PrivateFolders, is_last, open_folder, read_file, remove_tree
from netsandbox.backends.linux.session_root import SessionRoot
from netsandbox.errors import HostError


def test_each_project_has_its_own_home(tmp_path: Path) -> None:
    first, second = PrivateFolders(str(tmp_path), "/a/app"), PrivateFolders(str(tmp_path), "/b/app")
    assert first.home != second.home
    assert first.home == PrivateFolders(str(tmp_path), "/a/app").home
    assert os.stat(first.home).st_mode & 0o777 == 0o700


def test_names_of_projects_cannot_leave_the_folder(tmp_path: Path) -> None:
    for project in ("/", "/..", "/a/..", "/x/" + "é" * 200, "/a\nb"):
        home = PrivateFolders(str(tmp_path), project).home
        assert os.path.realpath(home).startswith(f"{os.path.realpath(tmp_path)}/homes/")


def test_sessions_at_once_use_different_folders_of_a_cache(tmp_path: Path) -> None:
    first, second = PrivateFolders(str(tmp_path), "/a"), PrivateFolders(str(tmp_path), "/a")
    one, two = first.cache("/c"), second.cache("/c")
    assert one != two
    first.close()
    assert PrivateFolders(str(tmp_path), "/a").cache("/c") == one
    second.close()


def test_no_two_projects_and_no_two_caches_have_a_folder_in_common(tmp_path: Path) -> None:
    first, second = PrivateFolders(str(tmp_path), "/a"), PrivateFolders(str(tmp_path), "/b")
    one = first.cache("/c")
    first.close()
    assert len({one, second.cache("/c"), second.cache("/d")}) == 3
    second.close()


def test_too_many_sessions_of_a_cache_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_folders, "MAX_SLOTS", 2)
    held = [PrivateFolders(str(tmp_path), "/a") for _ in range(3)]
    for each in held[:2]:
        each.cache("/c")
    with pytest.raises(HostError, match="end some"):
        held[2].cache("/c")
    for each in held:
        each.close()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "homes").write_text("")
    with pytest.raises(HostError, match="cannot make"):
        _ = PrivateFolders(str(tmp_path), "/a").home


def test_what_sessions_left_in_the_way_of_mounts_is_removed(tmp_path: Path) -> None:
    folders = PrivateFolders(str(tmp_path), "/a")
    inner = Path(folders.home)
    source = tmp_path / "tool"
    source.mkdir()
    (inner / "link").symlink_to("/etc")
    (inner / "file").write_text("")
    (inner / "folder/deep").mkdir(parents=True)
    (inner / "kept").write_text("kept")
    root = SessionRoot()
    root.place(folders.home, "/h", writable=True)
    for name in ("link/tool", "file", "folder"):
        root.place(str(source), f"/h/{name}")
    root.place(str(tmp_path / "nothing"), "/h/folder2")
    folders.clear_way("/h", root)
    assert not os.path.lexists(inner / "link")
    assert not (inner / "file").exists()
    assert (inner / "folder/deep").is_dir()
    assert (inner / "kept").read_text() == "kept"


def test_copies_of_an_earlier_session_are_gone_however_it_left_them(tmp_path: Path) -> None:
    first = PrivateFolders(str(tmp_path / "state"), "/p")
    copies = Path(first.git_copies())
    (tmp_path / "other").mkdir()
    (tmp_path / "other/kept").write_text("")
    (copies / "link").symlink_to(tmp_path / "other")
    (copies / "a/b").mkdir(parents=True)
    (copies / "a").chmod(0)
    first.close()
    second = PrivateFolders(str(tmp_path / "state"), "/p")
    assert list(Path(second.git_copies()).iterdir()) == []
    assert not copies.exists()
    assert (tmp_path / "other/kept").exists()
    second.close()


def test_a_tree_that_cannot_be_removed_is_in_nobodys_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_deep(path: str) -> None:
        raise RecursionError

    first = PrivateFolders(str(tmp_path / "state"), "/p")
    (Path(first.git_copies()) / "left").mkdir()
    first.close()
    monkeypatch.setattr(private_folders, "remove_tree", too_deep)
    second = PrivateFolders(str(tmp_path / "state"), "/p")
    assert list(Path(second.git_copies()).iterdir()) == []
    second.close()


def test_a_fresh_home_is_empty_at_its_start_and_gone_at_its_end(tmp_path: Path) -> None:
    kept = PrivateFolders(str(tmp_path), "/a")
    Path(kept.home, "mine").write_text("x")
    fresh = PrivateFolders(str(tmp_path), "/a", fresh=True)
    assert (kept.is_kept, fresh.is_kept) == (True, False)
    assert os.listdir(fresh.home) == []
    assert not fresh.moved("XDG_CACHE_HOME").startswith(os.path.dirname(kept.home) + "/XDG")
    Path(fresh.home, "gone").write_text("x")
    second = PrivateFolders(str(tmp_path), "/a", fresh=True)  # at the same time
    assert os.listdir(second.home) == []
    home = fresh.home
    for folders in (fresh, second):
        folders.close()
    assert not os.path.exists(home)
    assert os.listdir(kept.home) == ["mine"]


def test_a_fresh_home_that_a_killed_session_left_is_emptied(tmp_path: Path) -> None:
    first = PrivateFolders(str(tmp_path), "/a", fresh=True)
    Path(first.home, "left").write_text("x")
    for lock in first._locks:  # as the kernel does
        os.close(lock)
    again = PrivateFolders(str(tmp_path), "/a", fresh=True)
    assert again.home == first.home
    assert os.listdir(again.home) == []
    again.close()


def test_a_tree_deeper_than_any_recursion_is_removed_and_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_text("")
    top = tmp_path / "top"
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(2500):
        os.symlink(tmp_path / "kept", "link", dir_fd=here)
        os.mkdir("d", dir_fd=here)
        above, here = here, os.open("d", os.O_RDONLY, dir_fd=here)
        os.fchmod(above, 0o500)
        os.close(above)
    os.close(here)
    remove_tree(str(top))
    assert os.listdir(tmp_path) == ["kept"]
    assert os.listdir(tmp_path / "kept") == ["file"]


def test_folders_that_another_session_exchanges_lead_to_nothing_of_the_host(tmp_path: Path) -> None:
    """It shares the home, and may put a link in the place of a folder between two looks."""
    folders = PrivateFolders(f"{tmp_path}/state", "/p")
    home = Path(folders.home)
    (tmp_path / "host").mkdir()
    (tmp_path / "host/bin").symlink_to("elsewhere")
    (home / ".cargo/bin").mkdir(parents=True)
    (home / "link").symlink_to(tmp_path / "host")
    root = SessionRoot()
    root.place(folders.home, "/h", writable=True)
    root.fresh("/h/.cargo/bin")
    ended = Event()

    def exchange() -> None:
        while not ended.is_set():
            for one, other in ((".cargo", "folder"), ("link", ".cargo"), (".cargo", "link"), ("folder", ".cargo")):
                try:
                    (home / one).rename(home / other)
                except OSError:  # it was removed
                    (home / "folder").mkdir(exist_ok=True)
                    (home / "link").is_symlink() or (home / "link").symlink_to(tmp_path / "host")

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(exchange)
        for _ in range(2000):
            folders.clear_way("/h", root)
        ended.set()
        done.result(60)
    assert (tmp_path / "host/bin").is_symlink()


def test_a_folder_below_one_that_cannot_be_listed_is_opened(tmp_path: Path) -> None:
    (tmp_path / "closed/inner").mkdir(parents=True)
    (tmp_path / "closed").chmod(0o311)
    os.close(open_folder(f"{tmp_path}/closed/inner"))
    (tmp_path / "closed").chmod(0o700)


def test_folders_below_another_are_reached_without_links(tmp_path: Path) -> None:
    (tmp_path / "src/inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("src")
    root = os.open(tmp_path, os.O_RDONLY)
    try:
        for path in ("src/inner", ""):
            found = open_folder(path, root)
            assert os.path.samestat(os.fstat(found), os.stat(tmp_path / path))
            os.close(found)
        with pytest.raises(OSError, match="directory"):
            open_folder("link/inner", root)
    finally:
        os.close(root)


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "x/.git").mkdir(parents=True)
    return tmp_path / "x/.git"


def test_a_lock_that_a_command_keeps_on_a_git_directory_holds_nobody_up(git: Path, tmp_path: Path) -> None:
    held = os.open(git, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    assert is_last(PrivateFolders(str(tmp_path), "/").git_lock(str(git)))
    fcntl.fcntl(held, fcntl.F_OFD_SETLK, fcntl.F_RDLCK.to_bytes(2, sys.byteorder) + bytes(30))
    assert not is_last(PrivateFolders(str(tmp_path), "/").git_lock(str(git)))  # what was made there stays
    with pytest.raises(OSError, match="Bad file descriptor"):
        fcntl.fcntl(held, fcntl.F_OFD_SETLK, fcntl.F_WRLCK.to_bytes(2, sys.byteorder) + bytes(30))
    os.close(held)


def test_sessions_with_other_state_homes_know_of_each_other(git: Path, tmp_path: Path) -> None:
    first, second = (PrivateFolders(str(tmp_path / name), "/").git_lock(str(git)) for name in ("one", "two"))
    assert not is_last(first)
    assert is_last(second)


def test_a_git_directory_that_cannot_be_locked_is_an_error(
    git: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*words: object) -> bytes:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "fcntl", fail)
    with pytest.raises(HostError, match=r"No locks available; leave it unprotected with --allow-write ~/x/\.git"):
        PrivateFolders(str(tmp_path), "/").git_lock(str(git))


def test_only_a_plain_file_of_bounded_size_is_read_and_no_link_followed(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"12345678")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/plain").write_bytes(b"x")
    (tmp_path / "link").symlink_to("plain")
    (tmp_path / "way").symlink_to("folder")
    os.mkfifo(tmp_path / "pipe")
    assert read_file(f"{tmp_path}/plain", 8) == b"12345678"
    before = os.listdir("/proc/self/fd")
    for name, limit in (("plain", 7), ("folder", 8), ("link", 8), ("way/plain", 8), ("pipe", 8), ("none", 8)):
        with pytest.raises(OSError, match=r".+"):
            read_file(f"{tmp_path}/{name}", limit)
    assert os.listdir("/proc/self/fd") == before


def test_what_covers_a_hidden_file_cannot_be_opened(tmp_path: Path) -> None:
    """Root's too: the command has no capabilities, so the mode counts for it."""
    folders = PrivateFolders(str(tmp_path / "state"), "/p")
    assert folders.closed_file == folders.closed_file
    assert Path(folders.closed_file).stat().st_mode & 0o7777 == 0
    assert Path(folders.closed_file).stat().st_size == 0
    assert Path(folders.empty_file).read_bytes() == b""
    folders.close()
