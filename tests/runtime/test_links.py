"""The links on the way to a path, on a real disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.errors import HostError
from netsandbox.paths import PACKAGE
from netsandbox.runtime.links import MAX_LINKS, links_of_loop, links_on, links_to, made_later
from tests.rig.waiting import wait_for


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "short").symlink_to("a")
    (tmp_path / "a" / "up").symlink_to("../short/b")
    (tmp_path / "whole").symlink_to(tmp_path / "a" / "up")
    (tmp_path / "lost").symlink_to("nowhere/x")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "links"),
    [
        ("a/b", []),
        ("absent/x", []),
        ("short/b", ["short"]),
        ("short/../short/b", ["short"]),
        ("a/./up/x", ["a/up", "short"]),
        ("whole", ["whole", "a/up", "short"]),
        ("lost", ["lost"]),
    ],
)
def test_each_link_is_named_by_where_it_lies(disk: Path, path: str, links: list[str]) -> None:
    assert links_on(f"{disk}/{path}") == tuple(str(disk / link) for link in links)


def test_links_that_lead_elsewhere_meanwhile_are_an_error(disk: Path) -> None:
    """A command of another session may exchange them between one look and the next."""
    assert links_to(str(disk / "short" / "b"), str(disk / "a" / "b")) == (str(disk / "short"),)
    with pytest.raises(HostError, match="leads elsewhere each time"):
        links_to(str(disk / "a" / "b"), str(disk / "other"))


def test_links_without_end_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(HostError, match=f"more than {MAX_LINKS} links"):
        links_on(str(tmp_path / "round"))
    assert links_of_loop(str(tmp_path / "round")) == (str(tmp_path / "round"),)
    (tmp_path / "to").symlink_to("round/x")
    assert links_of_loop(str(tmp_path / "to")) == (str(tmp_path / "to"), str(tmp_path / "round"))


@given(st.lists(st.sampled_from(("etc", "bin", "proc", "self", "..", ".", "", "x")), max_size=8))
def test_a_path_without_links_is_its_own_real_path(names: list[str]) -> None:
    path = "/" + "/".join(names)
    if not links_on(path):
        links_to(path, os.path.realpath(path))
        assert os.path.realpath(path) == os.path.normpath("/" + path.lstrip("/"))


@pytest.mark.attack(146)
def test_146_a_link_counts_as_made_by_a_command_if_it_came_after_the_first_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    old, new = tmp_path / "old", tmp_path / "new"
    old.symlink_to("/srv")
    links = (str(old), str(new))
    assert made_later("x:1", links[:1]) == ()  # there was no session
    (tmp_path / "netsandbox").mkdir()
    (tmp_path / "netsandbox" / "first-session").write_text(str(old.lstat().st_ctime_ns + 1))
    wait_for(lambda: _is_later(new, old))
    assert made_later("x:1", links) == (str(new),)
    assert made_later(f"{PACKAGE}/profiles/files/node.toml:3", links) == ()
    (tmp_path / "netsandbox" / "first-session").write_text("no time")
    assert made_later("x:1", links) == links  # who cannot tell believes nothing
    new.unlink()
    with pytest.raises(HostError, match="cannot look at"):
        made_later("x:1", links)


def _is_later(new: Path, old: Path) -> bool:
    """The clock of files stands still for some milliseconds."""
    new.unlink(missing_ok=True)
    new.symlink_to("/srv")
    return new.lstat().st_ctime_ns > old.lstat().st_ctime_ns


def test_a_link_where_the_user_changes_nothing_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netsandbox.runtime.links.first_session", lambda: 0)
    monkeypatch.setattr("netsandbox.runtime.links.user_can_change", lambda folder: folder != "/")
    assert made_later("x:1", ("/tmp", "/tmp/x")[:1]) == ()
