"""The user's list of what sessions in a folder may write, kept outside of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from netsandbox.cli import config
from netsandbox.config.paths import list_file
from netsandbox.errors import HostError, UsageError
from netsandbox.paths import config_home


@pytest.fixture(autouse=True)
def project(home_project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("EDITOR", raising=False)
    return home_project


def content() -> str:
    return Path(list_file() or "").read_text()


def test_a_path_is_added_once_and_removed_by_any_spelling(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assets = project.parent / "assets"
    assets.mkdir()
    assert config.main(["add-path", "~/assets/"]) == 0
    assert capsys.readouterr() == (f"Added {assets}\nConfig file: {list_file()}\n", "")
    assert config.main(["add-path", "../assets"]) == 0
    assert "listed already" in capsys.readouterr().out
    assert content().splitlines()[1:] == [str(assets)]
    assert content().startswith(f"# What sessions in {project} may write")
    assert config.main(["remove-path", str(assets)]) == 0
    assert capsys.readouterr().out == f"Removed {assets}\nConfig file: {list_file()}\n"
    assert content().splitlines()[1:] == []
    assert config.main(["remove-path", str(assets)]) == 1
    assert "is not listed" in capsys.readouterr().err


def test_the_list_is_the_users_alone(project: Path) -> None:
    config.main(["add-path", "/tmp"])
    file = Path(list_file() or "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert os.listdir(file.parent) == [file.name]


def test_a_path_that_does_not_exist_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert config.main(["add-path", "/absent"]) == 0
    told = capsys.readouterr()
    assert told.err == (
        "netsandbox: warning: /absent does not exist; the entry takes effect in sessions that start once it does\n"
    )
    assert told.out.startswith("Added /absent\n")


def test_the_lists_are_shown_by_where_they_come_from(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = Path(config_home(), "config.toml")
    assert config.main(["list-paths"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"Current directory: {project} (always writable)",
        "",
        f"Global paths (from {own}):",
        "  (none)",
        "",
        f"Per-directory paths (from {list_file()}):",
        "  (none)",
    ]
    own.parent.mkdir(parents=True)
    own.write_text("[filesystem]\nallow_write = ['/tmp', '~/Downloads']\n")
    (project / ".netsandbox.toml").write_text("[filesystem]\nallow_write = ['/theirs']\n")
    config.main(["add-path", "/srv"])
    capsys.readouterr()
    assert config.main(["list-paths"]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        f"Global paths (from {own}):",
        "  /tmp",
        "  ~/Downloads",
        "",
        f"Per-directory paths (from {list_file()}):",
        "  /srv",
        "",
        f"Project paths (from {project}/.netsandbox.toml; ignored until you run `netsandbox trust`):",
        "  /theirs",
    ]


@pytest.mark.parametrize("verb", ["list-paths", "edit", "add-path", "remove-path"])
def test_a_list_is_for_folders_in_the_home(verb: str, monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    monkeypatch.chdir("/usr")
    with pytest.raises(UsageError) as error:
        config.main([verb, *(["/x"] if verb.endswith("-path") else [])])
    assert "must be invoked from within your home directory" in str(error.value)
    assert f"Current directory: /usr. Home directory: {project.parent}" in str(error.value)


@pytest.mark.parametrize("words", [["add-path"], ["add-path", "a", "b"], ["edit", "x"], ["list-paths", "x"]])
def test_too_few_and_too_many_words_are_errors(words: list[str]) -> None:
    with pytest.raises(UsageError, match=f"config {words[0]} takes"):
        config.main(words)


@pytest.mark.parametrize("path", ["", "~you", "a\nb", "a\x1b", "a ", "a #b", "**/b"])
def test_what_cannot_stand_on_a_line_is_not_added(path: str) -> None:
    with pytest.raises(UsageError):
        config.main(["add-path", path])
    assert not os.path.exists(list_file() or "")


def editor(folder: Path, text: str) -> str:
    program = folder / "editor"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return f"{program} --wait"


def test_the_editor_opens_a_file_that_is_there(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EDITOR", editor(project, 'test "$1" = --wait && test -f "$2" && echo /edited >> "$2"'))
    assert config.main(["edit"]) == 0
    assert content().endswith("\n/edited\n")
    assert capsys.readouterr().out == f"Config file: {list_file()}\n"


@pytest.mark.parametrize(
    ("script", "error", "message"),
    [
        ('echo wrong >> "$2"', UsageError, r"Line 2: Invalid path format"),
        ("exit 3", HostError, "ended with status 3"),
    ],
)
def test_a_slip_in_the_editor_is_told_at_once(
    project: Path, monkeypatch: pytest.MonkeyPatch, script: str, error: type[Exception], message: str
) -> None:
    monkeypatch.setenv("EDITOR", editor(project, script))
    with pytest.raises(error, match=message):
        config.main(["edit"])


def test_without_a_word_the_editor_is_vi(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(project, 'echo /by-vi >> "$1"')
    (project / "editor").rename(project / "vi")
    monkeypatch.setenv("PATH", f"{project}:{os.environ['PATH']}")
    assert config.main(["edit"]) == 0
    assert content().endswith("/by-vi\n")
    monkeypatch.setenv("EDITOR", "/absent/editor")
    with pytest.raises(HostError, match="cannot start the editor"):
        config.main(["edit"])


def test_a_list_that_cannot_be_written_is_an_error(project: Path) -> None:
    Path(config_home()).parent.mkdir(parents=True)
    Path(config_home()).write_text("in the way")
    with pytest.raises(HostError, match="cannot write"):
        config.main(["add-path", "/srv"])


def test_the_working_folder_of_a_repository_is_writable_with_all_of_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / ".git").mkdir()
    (project / "src").mkdir()
    monkeypatch.chdir(project / "src")
    config.main(["list-paths"])
    first = capsys.readouterr().out.splitlines()[0]
    assert first == f"Current directory: {project}/src (always writable, as all of {project})"
    monkeypatch.chdir(project.parent)
    config.main(["list-paths"])
    assert "(it is not a project, so nothing of it is writable)" in capsys.readouterr().out.splitlines()[0]


def test_a_place_of_secrets_can_be_added_and_the_warning_names_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.parent / ".ssh").mkdir()
    (project.parent / ".config/gh").mkdir(parents=True)
    assert config.main(["add-path", "~/.ssh"]) == 0
    assert capsys.readouterr().err == (
        "netsandbox: warning: sessions can read and change ~/.ssh, which may hold secrets\n"
    )
    for path in ("~/.config", "~/project"):  # the secrets in a folder stay hidden
        config.main(["add-path", path])
        assert capsys.readouterr().err == ""


def test_global_edits_the_users_file_and_leaves_the_rest_of_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = Path(config_home(), "config.toml")
    assert config.main(["add-path", "--global", "/srv"]) == 0
    assert capsys.readouterr().out == f"Added /srv\nConfig file: {own}\n"
    text = own.read_text()
    own.write_text("# mine\n" + text)
    config.main(["add-path", "-g", "/opt"])
    config.main(["add-path", "-g", "/srv/"])
    assert "listed already" in capsys.readouterr().out
    assert own.read_text() == '# mine\n[filesystem]\nallow_write = [\n    "/srv",\n    "/opt",\n]\n'
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    assert not os.path.exists(list_file() or "")
    assert config.main(["remove-path", "-g", "/srv"]) == 0
    assert own.read_text() == '# mine\n[filesystem]\nallow_write = [\n    "/opt",\n]\n'
    assert config.main(["remove-path", "-g", "/srv"]) == 1
    assert "is not listed" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["allow_write = ['/a', '/srv']", "allow_write = [\n '/a', '/srv',\n]"])
def test_global_removes_no_more_than_the_path(text: str) -> None:
    own = Path(config_home(), "config.toml")
    own.parent.mkdir(parents=True)
    own.write_text(f"[filesystem]\n{text}\n")
    with pytest.raises(UsageError, match="has more than this path; remove it there yourself"):
        config.main(["remove-path", "--global", "/srv"])
    assert own.read_text() == f"[filesystem]\n{text}\n"


def test_global_is_for_adding_and_removing() -> None:
    for subcommand in ("list-paths", "edit"):
        with pytest.raises(UsageError, match="--global is for add-path and remove-path"):
            config.main([subcommand, "--global"])
