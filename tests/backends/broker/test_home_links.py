"""Links in the private home to what is shown of the real one; test_session_files.py follows them under Landlock."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.backends.broker.home_links import home_links, link_home
from netsandbox.backends.broker.landlock_view import LandlockView
from netsandbox.policy.file_rules import FileRules, PathRule
from netsandbox.runtime.protection import OwnPaths
from tests.rig.views import home

__all__ = ["home"]


@pytest.fixture
def view(home: Path) -> LandlockView:
    (home / ".cargo/bin").mkdir(parents=True)
    (home / "dotfiles").mkdir()
    (home / "dotfiles/vimrc").write_text("vim")
    (home / ".vimrc").symlink_to("dotfiles/vimrc")
    (home / ".npm/_cacache").mkdir(parents=True)
    rules = FileRules(caches=(PathRule(f"{home}/.npm/_cacache", "profile:1"),))
    view = LandlockView(rules, {}, str(home / "app"), str(home / "state"))
    view.build("true", OwnPaths(), None)
    return view


def test_what_is_shown_of_the_home_has_a_link(home: Path, view: LandlockView) -> None:
    links = home_links(view)
    cache = links.pop(".npm/_cacache")
    assert cache.startswith(f"{home}/state/homes/")
    assert links == {name: f"{home}/{name}" for name in ("app", ".cargo/bin", ".vimrc", "dotfiles/vimrc")}


def test_links_lead_to_the_hosts_files_and_go_with_the_session(home: Path, view: LandlockView) -> None:
    link_home(view)
    private = Path(view.folders.home)
    assert (private / ".vimrc").read_text() == "vim"
    assert os.path.samefile(private / ".cargo/bin", home / ".cargo/bin")
    (private / "mine").write_text("kept")
    view.folders.close()
    assert os.listdir(private) == ["mine"]


def test_a_file_and_an_empty_folder_are_replaced_and_a_full_folder_stays(home: Path, view: LandlockView) -> None:
    private = Path(view.folders.home)
    (private / ".vimrc").write_text("another")
    (private / "app").mkdir()
    (private / ".cargo/bin/mine").mkdir(parents=True)
    (private / ".npm").write_text("a file where a folder is needed")
    (private / ".bashrc").write_text("run")
    link_home(view)
    assert (private / ".vimrc").is_symlink()
    assert (private / "app").is_symlink()
    assert (private / ".cargo/bin/mine").is_dir()
    assert (private / ".npm/_cacache").is_symlink()
    assert not (private / ".bashrc").exists()


def test_a_full_folder_on_the_way_and_a_link_there_are_not_followed(
    home: Path, view: LandlockView, tmp_path: Path
) -> None:
    private, outside = Path(view.folders.home), tmp_path / "outside"
    outside.mkdir()
    (private / ".cargo").symlink_to(outside)
    link_home(view)
    assert os.listdir(outside) == []
    assert not (private / ".cargo").is_symlink()
    assert (private / ".cargo/bin").is_symlink()


def test_links_stay_while_another_session_of_the_project_uses_them(home: Path, view: LandlockView) -> None:
    link_home(view)
    other = LandlockView(FileRules(), {}, str(home / "app"), str(home / "state"))
    other.build("true", OwnPaths(), None)
    link_home(other)
    view.folders.close()
    private = Path(other.folders.home)
    assert (private / ".vimrc").is_symlink()
    other.folders.close()
    assert not (private / ".vimrc").is_symlink()
