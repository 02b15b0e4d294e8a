"""`apply` on the disk: content of a session, in a folder that changes meanwhile."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable
from errno import ENOSPC
from pathlib import Path

import pytest

from netsandbox.backends.linux.kept_overlays import Overlay
from netsandbox.backends.namespaces import overlay_apply
from netsandbox.backends.namespaces.overlay_apply import DRAFT, Application
from netsandbox.backends.namespaces.overlay_files import scan
from netsandbox.errors import NetsandboxError
from netsandbox.policy.overlay_plan import plan
from tests.backends.namespaces.test_overlay_files import overlay, upper, whiteout  # noqa: F401 (a fixture)

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="whiteouts are devices, which only root makes by hand")


def applied(overlay: Overlay, *named: str) -> int:  # noqa: F811
    found = scan(overlay)
    application = Application(overlay, found.trees)
    try:
        application.carry_out(plan(found.changes, found.trees, named, force=True).steps)
    finally:
        application.close()
        assert not list(Path(overlay.folder).rglob(f"{DRAFT}*"))
    return application.done


def test_everything_arrives_with_mode_and_time_but_without_setuid(overlay: Overlay) -> None:  # noqa: F811
    host = Path(overlay.folder)
    upper(overlay, "a").write_text("changed")
    upper(overlay, "a").chmod(0o6755)
    os.utime(upper(overlay, "a"), ns=(5, 5))
    upper(overlay, "deep/er/file").write_text("x")
    upper(overlay, "deep").chmod(0o2700)
    upper(overlay, "link").symlink_to("/etc/passwd")
    whiteout(overlay, "src")
    applied(overlay)
    assert (host / "a").read_text() == "changed"
    assert stat.S_IMODE((host / "a").stat().st_mode) == 0o755
    assert (host / "a").stat().st_mtime_ns == 5
    assert (host / "deep/er/file").read_text() == "x"
    assert stat.S_IMODE((host / "deep").stat().st_mode) == 0o700
    assert os.readlink(host / "link") == "/etc/passwd"
    assert not (host / "src").exists()
    assert scan(overlay).changes == []


@pytest.mark.parametrize(
    ("before", "after"), [("file", "folder"), ("folder", "file"), ("link", "folder"), ("folder", "link")]
)
def test_one_kind_replaces_another(overlay: Overlay, tmp_path: Path, before: str, after: str) -> None:  # noqa: F811
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "inner").write_text("canary")
    for path, kind in ((Path(overlay.folder, "x"), before), (upper(overlay, "x"), after)):
        if kind == "folder":
            path.mkdir()
            (path / "inner").write_text(kind)
        elif kind == "link":
            path.symlink_to(outside)
        else:
            path.write_text(kind)
    applied(overlay)
    found = Path(overlay.folder, "x")
    assert found.is_symlink() == (after == "link")
    assert found.is_dir() == (after in ("folder", "link"))
    assert (outside / "inner").read_text() == "canary"
    assert [path.name for path in outside.iterdir()] == ["inner"]


def test_devices_are_never_made(overlay: Overlay) -> None:  # noqa: F811
    os.mknod(upper(overlay, "disk"), stat.S_IFBLK | 0o666, os.makedev(7, 0))
    os.mkfifo(upper(overlay, "pipe"))
    upper(overlay, "b").write_text("x")
    assert applied(overlay) == 1
    assert sorted(os.listdir(overlay.folder)) == ["a", "b", "src"]


def test_folders_that_become_read_only_get_their_content_first(overlay: Overlay) -> None:  # noqa: F811
    upper(overlay, "src/new").write_text("x")
    upper(overlay, "src").chmod(0o555)
    applied(overlay)
    assert Path(overlay.folder, "src/new").read_text() == "x"
    assert stat.S_IMODE(Path(overlay.folder, "src").stat().st_mode) == 0o555


def test_a_file_that_pretends_to_be_large_stays_small(overlay: Overlay) -> None:  # noqa: F811
    with open(upper(overlay, "big"), "wb") as file:
        file.write(b"begin")
        file.seek(1 << 32)
        file.write(b"end")
    applied(overlay)
    made = Path(overlay.folder, "big")
    assert made.stat().st_size == (1 << 32) + 3
    assert made.stat().st_blocks < 1 << 12
    with open(made, "rb") as file:
        assert file.read(6) == b"begin\0"
        file.seek(1 << 32)
        assert file.read() == b"end"


def test_the_owner_of_a_file_stays(overlay: Overlay) -> None:  # noqa: F811
    os.chown(f"{overlay.folder}/a", 12345, 12346)
    upper(overlay, "a").write_text("changed")
    applied(overlay)
    found = os.stat(f"{overlay.folder}/a")
    assert (found.st_uid, found.st_gid) == (12345, 12346)


@pytest.mark.parametrize("disk", ["same", "another"])
def test_a_file_is_written_where_no_session_sees_it(
    overlay: Overlay,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    disk: str,
) -> None:
    """A session in the same folder could open a draft there and keep it open; on another disk there is no other way."""
    if disk == "another":
        place = tempfile.mkdtemp(dir="/dev/shm")
        shutil.move(overlay.data, place)
        overlay = Overlay(overlay.name, place, overlay.folder, overlay.since)
    upper(overlay, "a").write_text("session")
    seen: list[str] = []
    copy = overlay_apply._copy_content

    def watched(source: int, target: int, size: int) -> None:
        seen.extend(os.listdir(overlay.folder))
        copy(source, target, size)

    monkeypatch.setattr(overlay_apply, "_copy_content", watched)
    applied(overlay)
    if disk == "another":
        shutil.rmtree(overlay.place)
    assert any(name.startswith(DRAFT) for name in seen) == (disk == "another")
    assert Path(overlay.folder, "a").read_text() == "session"


def test_a_new_file_gets_the_group_that_its_folder_gives(overlay: Overlay) -> None:  # noqa: F811
    os.chown(f"{overlay.folder}/src", -1, 12346)
    os.chmod(f"{overlay.folder}/src", 0o2755)
    upper(overlay, "src/new").write_text("x")
    applied(overlay)
    assert os.stat(f"{overlay.folder}/src/new").st_gid == 12346


def test_a_full_disk_stops_it_and_says_where(overlay: Overlay, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    upper(overlay, "a").write_text("session")

    def full(source: int, target: int, size: int) -> None:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(overlay_apply, "_copy_content", full)
    with pytest.raises(NetsandboxError, match=r"stopped at 'a' \(No space left on device\) after 0 changes"):
        applied(overlay)
    assert Path(overlay.folder, "a").read_text() == "one"
    assert os.listdir(overlay.place) == ["data"]


# Races: a program of the host changes something after the plan was made.


def swap_by_link(overlay: Overlay, outside: Path) -> None:  # noqa: F811
    Path(overlay.folder, "src").rename(Path(overlay.folder).parent / "moved")
    Path(overlay.folder, "src").symlink_to(outside)


def swap_by_folder(overlay: Overlay, outside: Path) -> None:  # noqa: F811
    Path(overlay.folder, "src/b").unlink()
    Path(overlay.folder, "src/b").mkdir()
    Path(overlay.folder, "src/b/mine").write_text("host")


def write_in_place(overlay: Overlay, outside: Path) -> None:  # noqa: F811
    Path(overlay.folder, "src/b").write_text("host")


def link_of_same_name(overlay: Overlay, outside: Path) -> None:  # noqa: F811
    Path(overlay.folder, "src/b").unlink()
    Path(overlay.folder, "src/b").symlink_to(outside / "target")


@pytest.mark.parametrize("action", ["write", "remove"])
@pytest.mark.parametrize("change", [swap_by_link, swap_by_folder, write_in_place, link_of_same_name])
def test_what_changes_after_the_plan_stops_it(
    overlay: Overlay,  # noqa: F811
    tmp_path: Path,
    change: Callable[[Overlay, Path], None],
    action: str,
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("b", "target"):
        (outside / name).write_text("canary")
    if action == "write":
        upper(overlay, "src/b").write_text("session")
    else:
        whiteout(overlay, "src/b")
    found = scan(overlay)
    steps = plan(found.changes, found.trees).steps
    change(overlay, outside)
    application = Application(overlay, found.trees)
    with pytest.raises(NetsandboxError, match="the rest is kept"):
        application.carry_out(steps)
    application.close()
    assert application.done == 0
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"b": "canary", "target": "canary"}
    assert not any("session" in path.read_text() for path in tmp_path.joinpath("app").rglob("*") if path.is_file())


def test_a_change_while_the_content_is_copied_stops_it(
    overlay: Overlay,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    upper(overlay, "a").write_text("session")
    copy = overlay_apply._copy_content

    def meanwhile(source: int, target: int, size: int) -> None:
        copy(source, target, size)
        Path(overlay.folder, "a").write_text("host")

    monkeypatch.setattr(overlay_apply, "_copy_content", meanwhile)
    with pytest.raises(NetsandboxError, match="changed while"):
        applied(overlay)
    assert Path(overlay.folder, "a").read_text() == "host"


def test_a_folder_that_flips_between_folder_and_link_leads_nowhere(overlay: Overlay, tmp_path: Path) -> None:  # noqa: F811
    """Whatever wins, nothing is written outside."""
    outside = tmp_path / "outside"
    outside.mkdir()
    for number in range(40):
        upper(overlay, f"src/n{number}").write_text("session")
    done = threading.Event()

    def flip() -> None:
        real, away = Path(overlay.folder, "src"), tmp_path / "away"
        while not done.is_set():
            real.rename(away)
            with contextlib.suppress(OSError):  # a folder was made there meanwhile
                real.symlink_to(outside)
            while away.exists():
                with contextlib.suppress(OSError):
                    real.unlink()
                shutil.rmtree(real, ignore_errors=True)
                with contextlib.suppress(OSError):
                    away.rename(real)

    racer = threading.Thread(target=flip)
    racer.start()
    try:
        for _ in range(20):
            try:
                applied(overlay)
            except (NetsandboxError, OSError):
                continue
    finally:
        done.set()
        racer.join()
    assert list(outside.iterdir()) == []


def test_git_settings_that_run_nothing_are_merged(overlay: Overlay) -> None:  # noqa: F811
    plain = '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://example.com/x\n'
    Path(overlay.folder, ".git").mkdir()
    Path(overlay.folder, ".git/config").write_text(plain)
    upper(overlay, ".git/config").write_text(
        f'{plain}[branch "fix"]\n\tremote = origin\n\tmerge = refs/heads/fix\n[core]\n\thooksPath = hooks\n'
    )
    found = scan(overlay)
    application = Application(overlay, found.trees)
    merged = application.merge_config(".git/config")
    application.close()
    assert merged is not None
    assert merged.refused == ("core.hookspath",)
    text = Path(overlay.folder, ".git/config").read_text()
    assert "refs/heads/fix" in text
    assert "hooks" not in text.lower().replace("example", "")
    upper(overlay, ".git/config").write_text("[core\n")
    application = Application(overlay, scan(overlay).trees)
    assert application.merge_config(".git/config") is None
    application.close()
