"""What the view of a session permits, from a made-up home; test_session_files.py tries it under Landlock."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.backends.broker.carving import DEVICE, WRITE
from netsandbox.backends.broker.landlock_view import LandlockView, entries, own_places
from netsandbox.errors import HostError, UsageError
from netsandbox.policy.file_rules import FileRules, PathRule
from netsandbox.runtime.protection import OwnPaths
from tests.rig.views import home

__all__ = ["home"]


def build(home: Path, rules: FileRules | None = None, own: OwnPaths | None = None, **outer: str) -> LandlockView:
    inner = {name.encode(): value.encode() for name, value in outer.items()}
    view = LandlockView(rules or FileRules(), inner, str(home / "app"), str(home / "state"))
    own = own or OwnPaths()
    view.ours = own_places((*own.read_only, *own.hidden))
    view.build("true", own, None)
    view.check_secrets()
    return view


def rule(path: Path, origin: str = "--rule") -> tuple[PathRule, ...]:
    return (PathRule(str(path), origin),)


def test_the_project_and_the_private_home_are_written_and_devices_are_devices(home: Path) -> None:
    view = build(home)
    written = {path: rights for rights, path in view.writable_parts()}
    assert written[f"{home}/app"] == written[view.folders.home] == WRITE
    assert written["/dev/null"] == DEVICE
    assert str(home) not in written
    assert str(home) not in dict(view.readable_parts())


def test_a_folder_above_the_home_leaves_the_home_out(home: Path) -> None:
    view = build(home, FileRules(allow_read=rule(home.parent)))
    assert str(home) in dict(view.readable_parts())[str(home.parent)]


@pytest.mark.parametrize("which", ["deny_read", "deny_write"])
def test_a_deny_where_the_session_writes_names_its_rule(home: Path, which: str) -> None:
    (home / "app/keep").mkdir()
    (home / "data/keep").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"^--rule: ~/app/keep cannot be (hidden|kept) in ~/app"):
        build(home, FileRules(**{which: rule(home / "app/keep")}))  # type: ignore[arg-type]
    build(home, FileRules(allow_read=rule(home / "data"), **{which: rule(home / "data/keep")}))  # type: ignore[arg-type]


def test_a_hidden_path_in_a_shown_folder_is_left_out(home: Path) -> None:
    (home / "data/keep").mkdir(parents=True)
    view = build(home, FileRules(allow_read=rule(home / "data"), deny_read=rule(home / "data/keep")))
    assert f"{home}/data/keep" in dict(view.readable_parts())[f"{home}/data"]


def test_a_secret_where_the_session_writes_is_an_error(home: Path) -> None:
    (home / ".config/gh").mkdir(parents=True)
    with pytest.raises(HostError, match=r"~/.config/gh is a secret in ~/.config"):
        build(home, FileRules(allow_write=rule(home / ".config")))


@pytest.mark.parametrize("kind", ["hidden", "read_only"])
def test_our_files_where_the_session_writes_are_an_error(home: Path, kind: str) -> None:
    """INV-8."""
    (home / "app/ours").mkdir()
    with pytest.raises(HostError, match=r"~/app/ours belongs to netsandbox.*writes ~/app"):
        build(home, own=OwnPaths(**{kind: (f"{home}/app/ours",)}))


def test_a_project_in_our_files_is_not_written(home: Path) -> None:
    view = build(home, own=OwnPaths((), (str(home),)))
    assert f"{home}/app" not in [path for _, path in view.writable_parts()]


def test_the_links_to_our_files_count(home: Path) -> None:
    (home / "real").mkdir()
    (home / "app/link").symlink_to(home / "real")
    assert set(own_places([f"{home}/app/link"])) == {f"{home}/app/link", f"{home}/real"}
    with pytest.raises(HostError, match="~/app/link belongs"):
        build(home, own=OwnPaths((), (f"{home}/app/link",)))


def test_settings_of_an_agent_are_copied_in_the_home_and_watched_elsewhere(home: Path) -> None:
    (home / ".claude").mkdir()
    for name in (".claude.json", ".claude/.claude.json"):
        (home / name).write_text("{}")
    view = build(home, FileRules(allow_write=rule(home / ".claude.json", "profile:1")))
    assert [each.copy for each in view.agents] == [f"{view.folders.home}/.claude.json"]
    rules = FileRules(allow_write=(*rule(home / ".claude", "p:1"), *rule(home / ".claude/.claude.json", "p:2")))
    view = build(home, rules)
    assert f"{home}/.claude/.claude.json" in view.watched


def test_the_names_in_a_folder_are_listed_without_links(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").write_text("")
    (tmp_path / "c").symlink_to("a")
    assert sorted(entries(str(tmp_path))) == ["a", "b"]
    assert entries(str(tmp_path / "b")) == entries(str(tmp_path / "none")) == []
