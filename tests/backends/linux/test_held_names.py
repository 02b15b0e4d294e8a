"""Names that a session made: they are copied into an overlay and removed, or keep a name that nothing obeys."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from netsandbox.backends.linux import held_names
from netsandbox.backends.linux.held_names import hold_back
from netsandbox.backends.linux.kept_overlays import KeptOverlays


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "shop"
    folder.mkdir()
    return folder


def held(project: Path, *names: str) -> list[str]:
    return hold_back({f"{project}/{name}": str(project) for name in names}, str(project.parent / "state"))


def data(project: Path) -> Path:
    return Path(KeptOverlays(str(project.parent / "state")).load("shop-held").data)


def test_nothing_new_makes_no_overlay(project: Path) -> None:
    assert held(project, ".envrc", ".claude/settings.json") == []
    assert not (project.parent / "state").exists()


def test_a_tree_is_copied_with_its_rights_and_links_and_without_pipes(project: Path) -> None:
    (project / ".vscode/a").mkdir(parents=True)
    (project / ".vscode/a/run").write_text("x")
    (project / ".vscode/a/run").chmod(0o4755)
    (project / ".vscode/link").symlink_to("/etc/passwd")
    os.mkfifo(project / ".vscode/pipe")
    [line] = held(project, ".vscode")
    assert line.endswith("`netsandbox apply shop-held .vscode` puts it in place")
    kept = data(project) / ".vscode"
    assert sorted(path.name for path in kept.iterdir()) == ["a", "link"]
    assert (kept / "a/run").stat().st_mode & 0o7777 == 0o755
    assert os.readlink(kept / "link") == "/etc/passwd"
    assert os.listdir(project) == []


def test_a_later_name_is_not_written_through_a_link_that_was_kept_before(project: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (project / ".jj").symlink_to(elsewhere)
    held(project, ".jj")
    (project / ".jj/repo").mkdir(parents=True)
    (project / ".jj/repo/config.toml").write_text("x")
    held(project, ".jj/repo/config.toml")
    assert list(elsewhere.iterdir()) == []
    assert (data(project) / ".jj/repo/config.toml").read_text() == "x"


def test_a_copy_has_no_second_name(project: Path) -> None:
    (project / "a").write_text("before")
    os.link(project / "a", project / ".envrc")
    held(project, ".envrc")
    (project / "a").write_text("after")
    assert (data(project) / ".envrc").read_text() == "before"


@pytest.mark.parametrize("bound", ["MAX_BYTES", "MAX_ENTRIES", "MAX_DEPTH"])
def test_what_is_too_large_keeps_a_name_that_nothing_obeys(
    project: Path, bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_names, bound, 1)
    (project / ".vscode/a/b").mkdir(parents=True)
    (project / ".vscode/a/b/c").write_text("xy")
    (project / ".envrc").write_text("")
    too_large, kept = held(project, ".vscode", ".envrc")
    assert "so it is .vscode.netsandbox now" in too_large
    assert "would obey it: .envrc;" in kept
    assert os.listdir(project) == [".vscode.netsandbox"]
    assert os.listdir(data(project)) == [".envrc"]


def test_without_a_state_folder_the_name_is_changed(project: Path) -> None:
    (project.parent / "state").write_text("")
    (project / ".envrc").write_text("")
    [line] = held(project, ".envrc")
    assert "could not be kept" in line
    assert os.listdir(project) == [".envrc.netsandbox"]


def test_what_cannot_be_moved_is_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    (project / ".envrc").write_text("")
    monkeypatch.setattr(os, "rename", refuse)
    [line] = held(project, ".envrc")
    assert line.startswith(".envrc is new and could not be taken away (Operation not permitted): remove it")


def test_a_project_that_became_a_link_is_not_followed(project: Path, tmp_path: Path) -> None:
    project.rename(tmp_path / "moved")
    project.symlink_to(tmp_path / "moved")
    (project / ".envrc").write_text("")
    [line] = held(project, ".envrc")
    assert "could not be taken away" in line


def test_an_overlay_that_is_in_use_is_not_waited_for(project: Path) -> None:
    kept = KeptOverlays(str(project.parent / "state"))
    used = kept.begin("shop-held", str(project))
    try:
        (project / ".envrc").write_text("")
        [line] = held(project, ".envrc")
    finally:
        used.close()
    assert "netsandbox apply shop-held-2 .envrc" in line
