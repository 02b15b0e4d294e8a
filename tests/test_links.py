"""The links on the way to a path, on a real disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.errors import HostError
from netsandbox.links import MOST, is_ours, links_on, links_to


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
    with pytest.raises(HostError, match=f"more than {MOST} links"):
        links_on(str(tmp_path / "round"))


@given(st.lists(st.sampled_from(("etc", "bin", "proc", "self", "..", ".", "", "x")), max_size=8))
def test_a_path_without_links_is_its_own_real_path(names: list[str]) -> None:
    path = "/" + "/".join(names)
    if not links_on(path):
        links_to(path, os.path.realpath(path))
        assert os.path.realpath(path) == os.path.normpath("/" + path.lstrip("/"))


def test_a_folder_is_ours_if_it_can_be_written_or_made_so(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    assert is_ours(str(own))
    own.chmod(0o500)
    assert is_ours(str(own))
    assert is_ours(str(tmp_path / "nowhere"))  # who cannot tell believes nothing
    assert not _as_another_account(lambda: is_ours("/"))
    assert _as_another_account(lambda: is_ours("/tmp"))


def _as_another_account(question: Callable[[], bool]) -> bool:
    """The answer of an account that does not rule the system's folders."""
    if os.geteuid():
        return question()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            os._exit(0 if question() else 1)
        finally:
            os._exit(2)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 1)
    return status == 0
