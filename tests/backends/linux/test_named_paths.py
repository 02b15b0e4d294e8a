"""What rules show, open, close and hide in a view, from a made-up home."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.errors import UsageError
from netsandbox.policy.file_rules import FileRules, PathRule
from tests.rig.views import Build, build, home

__all__ = ["build", "home"]


@pytest.mark.parametrize(("kind", "mode"), [("allow_read", "readable"), ("allow_write", "open")])
def test_the_whole_disk_is_too_much(build: Build, kind: str, mode: str) -> None:
    with pytest.raises(UsageError, match=f"--files {mode}"):
        build(FileRules(**{kind: (PathRule("/", "--x"),)}))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["allow_read", "allow_write"])
def test_a_device_has_an_option_of_its_own(home: Path, build: Build, kind: str) -> None:
    (home / "link").symlink_to("/dev/ptmx")
    for path in ("/dev", "/dev/ptmx", f"{home}/link"):
        with pytest.raises(UsageError, match="--allow-device"):
            build(FileRules(**{kind: (PathRule(path, "--x"),)}))  # type: ignore[arg-type]
    root, _ = build(FileRules(**{kind: (PathRule("/dev/null", "--x"),)}))  # type: ignore[arg-type]
    assert root.entries == build(FileRules())[0].entries


def test_the_state_is_never_writable(home: Path, build: Build) -> None:
    (home / "state").mkdir()
    with pytest.raises(UsageError, match="state of netsandbox"):
        build(FileRules(allow_write=(PathRule(str(home), "--rw"),)))


def test_a_rule_without_its_path_changes_nothing(home: Path, build: Build) -> None:
    rule = PathRule(f"{home}/none", "--allow-read")
    root, _ = build(FileRules(allow_read=(rule,), deny_read=(rule,), deny_write=(rule,)))
    assert root.entries == build(FileRules())[0].entries


def test_a_denied_path_outside_of_the_view_needs_no_cover(home: Path, build: Build) -> None:
    (home / "other").mkdir()
    (home / "app/in").mkdir()
    rules = tuple(PathRule(f"{home}/{name}", "--deny-read") for name in ("other", "app/in"))
    root, _ = build(FileRules(deny_read=rules))
    assert f"{home}/other" not in root.entries
    assert root.entries[f"{home}/app/in"].kind == "tmpfs"


def test_what_a_variable_moves_is_kept_read_only_where_it_was_too(home: Path, build: Build) -> None:
    (home / ".npm/x").mkdir(parents=True)
    (home / "moved").mkdir()
    write = (PathRule(f"{home}/.npm/x", "--allow-write"), PathRule(f"{home}/moved", "--allow-write"))
    deny = (PathRule(f"{home}/.npm", "config.toml:3"),)
    open_root, _ = build(FileRules(allow_write=write), npm_config_cache=f"{home}/moved")
    assert open_root.entries[f"{home}/.npm/x"].writable
    root, _ = build(FileRules(allow_write=write, deny_write=deny), npm_config_cache=f"{home}/moved")
    assert not root.entries[f"{home}/.npm/x"].writable
    assert not root.entries[f"{home}/moved"].writable


def test_a_denied_folder_takes_away_what_is_shown_in_it(home: Path, build: Build) -> None:
    (home / ".local/bin").mkdir(parents=True)
    assert f"{home}/.local/bin" in build()[0].entries
    root, _ = build(FileRules(deny_read=(PathRule(f"{home}/.local", "--deny-read"),)))
    assert f"{home}/.local/bin" not in root.entries


@pytest.mark.parametrize("path", ["{home}", "{home}/app", "/"])
def test_the_working_folder_cannot_be_hidden(home: Path, build: Build, path: str) -> None:
    rule = PathRule(path.format(home=home), "--deny-read")
    with pytest.raises(UsageError, match=r"^--deny-read: .* holds the working folder"):
        build(FileRules(deny_read=(rule,)))


def test_a_folder_that_cannot_be_made_is_an_error_that_names_the_rule(home: Path, build: Build) -> None:
    (home / "file").write_text("")
    rule = PathRule(f"{home}/file", "--allow-write", folder=True)
    with pytest.raises(UsageError, match=r"^--allow-write: cannot make .*; make it yourself, or leave it out"):
        build(FileRules(allow_write=(rule,)))


@pytest.mark.parametrize("kind", ["deny_read", "deny_write", None])
def test_of_denied_settings_of_an_agent_there_is_no_copy(home: Path, build: Build, kind: str | None) -> None:
    path = home / ".claude.json"
    path.write_text('{"theme": "CANARY"}')
    denied = {kind: (PathRule(str(path), "--x"),)} if kind else {}
    root, view = build(FileRules(allow_write=(PathRule(str(path), "profile claude"),), **denied))  # type: ignore[arg-type]
    assert len(view.agents) == (1 if kind is None else 0)
    assert os.path.exists(f"{view.folders.home}/.claude.json") is (kind is None)
    assert (str(path) in root.entries) is (kind == "deny_write")
    assert kind != "deny_write" or not root.entries[str(path)].writable
