"""The modes readable and open as permits, from a made-up home; test_session_files_open.py tries them under Landlock."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.backends.broker import open_files
from netsandbox.backends.broker.carving import CHANGE, READ, READ_FILE, Permits
from netsandbox.backends.broker.open_files import OpenFiles
from netsandbox.backends.linux import file_view
from netsandbox.errors import HostError, UsageError
from netsandbox.policy.file_rules import FileRules, PathRule
from netsandbox.runtime.protection import OwnPaths
from tests.rig.views import home

__all__ = ["home"]


@pytest.fixture(autouse=True)
def place(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The homes of tests are in /tmp, which is no temporary folder here."""
    monkeypatch.chdir(home / "app")
    for module in (open_files, file_view):
        monkeypatch.setattr(module, "TEMPORARY", ())


def opened(rules: FileRules, own: OwnPaths | None = None, **outer: str) -> tuple[Permits, OpenFiles]:
    permits = Permits()
    inner = {name.encode(): value.encode() for name, value in outer.items()}
    return permits, OpenFiles(rules, inner, own or OwnPaths(), permits)


@pytest.mark.parametrize("mode", ["readable", "open"])
def test_secrets_and_our_state_are_closed(home: Path, mode: str) -> None:
    for name in (".ssh", "state", "data"):
        (home / name).mkdir()
    permits, _ = opened(FileRules(mode=mode), OwnPaths((f"{home}/state",)))
    assert permits.rights_at(f"{home}/.ssh") == permits.rights_at(f"{home}/state") == 0
    assert permits.rights_at(f"{home}/data") & READ == READ
    assert permits.rights_at(f"{home}/app") & CHANGE == CHANGE
    assert bool(permits.rights_at(f"{home}/data") & CHANGE) is (mode == "open")


def test_our_code_is_read_and_never_written(home: Path) -> None:
    """INV-8."""
    (home / "code/beside").mkdir(parents=True)
    (home / "code/ours").mkdir()
    permits, _ = opened(FileRules(mode="open"), OwnPaths((), (f"{home}/code/ours",)))
    assert permits.rights_at(f"{home}/code/ours") == READ
    assert permits.rights_at(f"{home}/code/beside") & CHANGE == CHANGE
    assert not permits.rights_at(f"{home}/code") & CHANGE


def test_processes_and_the_kernel_are_never_written(home: Path) -> None:
    permits, _ = opened(FileRules(mode="open"))
    assert not any(permits.rights_at(path) & CHANGE for path in ("/", "/proc", "/dev", "/sys"))
    assert not permits.rights_at("/dev/sda") & READ_FILE


@pytest.mark.parametrize("mode", ["readable", "open"])
@pytest.mark.parametrize("kind", ["deny_read", "deny_write"])
def test_a_deny_in_a_folder_that_is_needed_is_an_error(home: Path, mode: str, kind: str) -> None:
    (home / "app/keep").mkdir()
    rules = FileRules(mode=mode, **{kind: (PathRule(f"{home}/app/keep", "--rule"),)})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^--rule: ~/app/keep cannot be closed in ~/app"):
        opened(rules)


def test_a_deny_of_the_working_folder_itself_is_kept(home: Path) -> None:
    permits, _ = opened(FileRules(mode="readable", deny_write=(PathRule(f"{home}/app", "--rule"),)))
    assert permits.rights_at(f"{home}/app") == READ


def test_our_files_in_a_folder_that_a_rule_opens_are_an_error(home: Path) -> None:
    (home / "data/ours").mkdir(parents=True)
    rules = FileRules(mode="readable", allow_write=(PathRule(f"{home}/data", "--rule"),))
    with pytest.raises(HostError, match="~/data/ours belongs to netsandbox"):
        opened(rules, OwnPaths((), (f"{home}/data/ours",)))


def test_a_temporary_folder_with_our_files_is_replaced(home: Path) -> None:
    (home / "tmp/ours").mkdir(parents=True)
    own = OwnPaths((f"{home}/tmp/ours",))
    _, found = opened(FileRules(mode="readable"), own, TMPDIR=f"{home}/tmp")
    assert found.replaced
    assert any("no new names can be made in ~/tmp" in line for line in found.notices)
    _, found = opened(FileRules(mode="readable"), own)
    assert not found.replaced


def test_a_secret_in_the_working_folder_is_carved_and_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "app/login").write_text("")
    monkeypatch.setenv("NETRC", f"{home}/app/login")
    (home / "app/beside").write_text("")
    permits, found = opened(FileRules(mode="readable"))
    assert permits.rights_at(f"{home}/app/login") == 0
    assert permits.rights_at(f"{home}/app/beside") & CHANGE
    assert any("no new names can be made in ~/app" in line for line in found.notices)


def test_too_many_files_beside_a_hidden_one_are_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".ssh").mkdir()
    found = open_files.carve("/", (f"{home}/.ssh",), os.listdir, 1)
    monkeypatch.setattr(open_files, "carve", lambda *_: found)
    assert any("too many files beside hidden ones" in line for line in opened(FileRules(mode="readable"))[1].notices)
