"""A yes is for one file with one content; anything else is a no."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.config.paths import trust_folder
from netsandbox.config.trust import distrust, is_trusted, trust, trusted_paths
from netsandbox.errors import HostError


def test_nothing_is_trusted_before_the_user_says_so(project: Path) -> None:
    path = str(project / ".netsandbox.toml")
    assert not is_trusted(path, b"x")
    trust(path, b"x")
    assert is_trusted(path, b"x")
    assert trusted_paths() == [path]


@pytest.mark.parametrize("data", [b"", b"x ", b"X", b"xx"])
def test_another_content_is_another_file(project: Path, data: bytes) -> None:
    trust(str(project / "a"), b"x")
    assert not is_trusted(str(project / "a"), data)


def test_the_same_content_elsewhere_is_another_file(project: Path) -> None:
    trust(str(project / "a"), b"x")
    assert not is_trusted(str(project / "b"), b"x")
    assert not is_trusted(str(project / "ax"), b"")
    assert not is_trusted(str(project / "a" / "a"), b"x")


def test_a_link_to_a_trusted_file_is_not_trusted(project: Path) -> None:
    (project / "there").mkdir()
    (project / "there" / "f").write_bytes(b"x")
    trust(str(project / "there" / "f"), b"x")
    (project / "f").symlink_to(project / "there" / "f")
    assert not is_trusted(str(project / "f"), b"x")
    (project / "same").symlink_to(project / "there")
    assert is_trusted(str(project / "same" / "f"), b"x"), "the same place by another way"


def test_what_is_forgotten_is_forgotten_in_every_version(project: Path) -> None:
    path, other = str(project / "a"), str(project / "b")
    for data in (b"1", b"2"):
        trust(path, data)
    trust(other, b"1")
    assert distrust(path) == 2
    assert not is_trusted(path, b"1")
    assert is_trusted(other, b"1")
    assert distrust(path) == 0


@pytest.mark.parametrize("damage", ["empty", "other", "folder"])
def test_a_damaged_note_is_a_no(project: Path, damage: str) -> None:
    path = str(project / "a")
    trust(path, b"x")
    (note,) = Path(trust_folder()).iterdir()
    note.unlink()
    if damage == "folder":
        note.mkdir()
    else:
        note.write_bytes(b"" if damage == "empty" else os.fsencode(project / "b") + b"\n")
    assert not is_trusted(path, b"x")
    assert distrust(path) == 0


def test_notes_are_the_users_alone(project: Path) -> None:
    trust(str(project / "a"), b"x")
    (note,) = Path(trust_folder()).iterdir()
    assert (note.stat().st_mode & 0o777, note.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_what_cannot_be_noted_is_an_error(homes: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(homes / "taken"))
    (homes / "taken").write_text("")
    with pytest.raises(HostError, match=r"cannot note that .* is trusted"):
        trust(str(project / "a"), b"x")
    assert trusted_paths() == []
