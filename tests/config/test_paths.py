"""Where configuration is looked for."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config.paths import (
    folder_of,
    is_about_folder,
    is_list,
    list_file,
    profile_folder,
    project_files,
    rules_file,
    trust_folder,
    user_file,
    user_files,
)
from netsandbox.errors import UsageError
from netsandbox.paths import config_home
from netsandbox.runtime.protection import make_folders


def test_the_users_file_is_there_or_not(homes: Path) -> None:
    assert user_file() is None
    make_folders()
    Path(config_home(), "config.toml").symlink_to("nowhere")
    assert user_file() == str(Path(config_home(), "config.toml")), "a broken link is a mistake to be told, not nothing"


def test_trust_is_kept_where_no_session_sees_it(homes: Path) -> None:
    assert trust_folder() == str(homes / "state" / "netsandbox" / "trust")


def test_a_project_is_found_from_its_folders_below(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / ".git").mkdir()
    (project / "a" / "b").mkdir(parents=True)
    (project / ".netsandbox.toml").write_text("")
    monkeypatch.chdir(project / "a" / "b")
    assert project_files() == (str(project / ".netsandbox.toml"),)
    (project / "a" / ".netsandbox.toml").write_text("")
    (project / "a" / "b" / ".sandbox.toml").write_text("")
    found = [str(Path(path).relative_to(project)) for path in project_files()]
    assert found == [".netsandbox.toml", "a/.netsandbox.toml", "a/b/.sandbox.toml"], "the nearest is the highest"


def test_beyond_the_repository_nothing_is_looked_for(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / ".netsandbox.toml").write_text("")
    (project / "inner" / ".git").mkdir(parents=True)
    monkeypatch.chdir(project / "inner")
    assert project_files() == ()


def test_outside_of_a_repository_only_the_folder_itself_counts(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in /tmp, say, is anybody's."""
    (project / ".netsandbox.toml").write_text("")
    assert project_files() == (str(project / ".netsandbox.toml"),)
    (project / "below").mkdir()
    monkeypatch.chdir(project / "below")
    assert project_files() == ()


def test_a_folder_that_is_gone_has_no_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "gone").mkdir()
    monkeypatch.chdir(project / "gone")
    (project / "gone").rmdir()
    assert project_files() == ()
    assert list_file() is None


def test_of_one_folder_the_files_of_other_sandboxes_count_too_below_our_own(project: Path) -> None:
    (project / ".agent-os").mkdir()
    names = (".agent-os/sandbox-config.json", ".claude-sandbox.json", ".sandbox.toml", ".netsandbox.toml")
    for name in reversed(names):
        (project / name).write_text("")
    assert project_files() == tuple(str(project / name) for name in names)


def test_relative_paths_begin_at_the_project(project: Path) -> None:
    assert folder_of(str(project / ".netsandbox.toml")) == str(project)
    assert folder_of(str(project / ".agent-os" / "sandbox-config.json")) == str(project)
    assert folder_of(".claude-sandbox.json") == str(project)
    assert folder_of("/dev/fd/63") == folder_of("/dev/stdin") == str(project)


def test_the_users_list_is_named_after_the_real_folder(
    homes: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `printf %s FOLDER | sha256sum | cut -c1-16` names it."""
    wanted = hashlib.sha256(os.fsencode(project.resolve())).hexdigest()[:16]
    path = Path(config_home(), "projects", wanted)
    assert list_file() == str(path)
    assert user_files() == ()
    path.parent.mkdir(parents=True)
    assert user_files() == ()
    path.write_text("/srv\n")
    Path(config_home(), "config.toml").write_text("")
    assert user_files() == (user_file(), str(path))
    assert [is_list(each) for each in user_files()] == [False, True]
    (homes / "link").symlink_to(project)
    monkeypatch.chdir(homes / "link")
    assert list_file() == list_file(str(project)) == str(path)


def test_rules_of_a_folder_lie_beside_its_list(homes: Path, project: Path) -> None:
    path = Path(f"{list_file()}.toml")
    assert rules_file() == rules_file(str(project)) == str(path)
    assert rules_file(str(homes)) != str(path)
    path.parent.mkdir(parents=True)
    path.write_text("")
    assert user_files() == (str(path),)
    assert is_about_folder(str(path))
    assert not is_list(str(path))


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).map("/".__add__))
def test_the_name_of_a_list_is_the_beginning_of_a_hash_of_its_folder(folder: str) -> None:
    path = list_file(folder)
    assert path is not None
    assert os.path.basename(path) == hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]


def test_a_variable_names_another_folder_of_profiles(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert profile_folder() == str(Path(config_home(), "profiles"))
    monkeypatch.setenv("NETSANDBOX_PROFILE_DIR", "")
    assert profile_folder() == str(Path(config_home(), "profiles"))
    (homes / "shared").mkdir()
    monkeypatch.setenv("NETSANDBOX_PROFILE_DIR", str(homes / "shared"))
    assert profile_folder() == str(homes / "shared")
    monkeypatch.chdir(homes)
    for wrong in ("shared", str(homes / "missing")):
        monkeypatch.setenv("NETSANDBOX_PROFILE_DIR", wrong)
        with pytest.raises(UsageError, match="is not the full path of a folder; correct or unset the variable"):
            profile_folder()
