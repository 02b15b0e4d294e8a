"""Kept overlays: one holder at a time, a name for each, and nothing that leads out of the state home."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from netsandbox.backends.linux import kept_overlays
from netsandbox.backends.linux.kept_overlays import KeptOverlays, Overlay
from netsandbox.errors import HostError, UsageError


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptOverlays:
    monkeypatch.setattr(kept_overlays, "PAUSE", 0)
    (tmp_path / "app").mkdir(mode=0o750)
    return KeptOverlays(str(tmp_path / "state"))


def test_an_overlay_is_kept_until_it_is_removed(kept: KeptOverlays, tmp_path: Path) -> None:
    folder = str(tmp_path / "app")
    held = kept.begin("fix", folder)
    held.protect([f"{folder}/.vscode", "/elsewhere", folder])
    assert kept.is_running("fix")
    held.close()
    assert not kept.is_running("fix")
    assert kept.names() == ["fix"]
    found = kept.load("fix")
    assert (found.folder, found.protected) == (folder, (".vscode",))
    assert 0 < found.since <= os.stat(f"{found.place}/about").st_ctime_ns
    assert stat.S_IMODE(os.stat(found.data).st_mode) == 0o750
    again = kept.hold("fix")
    again.remove()
    again.close()
    assert kept.names() == []


def test_its_next_session_begins_where_the_first_began(kept: KeptOverlays, tmp_path: Path) -> None:
    """A change of the host between the two sessions is a conflict too."""
    first = kept.begin("fix", str(tmp_path / "app"))
    first.protect([f"{tmp_path}/app/a"])
    first.close()
    second = kept.begin("fix", str(tmp_path / "app"))
    second.protect([f"{tmp_path}/app/b"])
    second.close()
    assert second.overlay.since == first.overlay.since
    assert kept.load("fix").protected == ("a", "b")


def test_only_one_process_holds_an_overlay(kept: KeptOverlays, tmp_path: Path) -> None:
    held = kept.begin("fix", str(tmp_path / "app"))
    for taken in (lambda: kept.hold("fix"), lambda: kept.begin("fix", str(tmp_path / "app"))):
        with pytest.raises(HostError, match="netsandbox stop fix"):
            taken()
    held.close()
    kept.hold("fix").close()


def test_another_folder_of_the_same_name_is_an_error(kept: KeptOverlays, tmp_path: Path) -> None:
    kept.begin("fix", str(tmp_path / "app")).close()
    with pytest.raises(UsageError, match="another --name"):
        kept.begin("fix", str(tmp_path))
    kept.hold("fix").close()


@pytest.mark.parametrize("name", ["nobody", "../state/overlays/fix", "", ".", "fix/data"])
def test_unknown_names_are_errors_and_no_paths(kept: KeptOverlays, tmp_path: Path, name: str) -> None:
    kept.begin("fix", str(tmp_path / "app")).close()
    with pytest.raises(UsageError, match="choose one of fix"):
        kept.hold(name)


@pytest.mark.parametrize("about", [b"", b"x\0/app", b"12"])
def test_an_overlay_without_its_beginning_is_unknown(kept: KeptOverlays, tmp_path: Path, about: bytes) -> None:
    held = kept.begin("fix", str(tmp_path / "app"))
    Path(held.overlay.place, "about").write_bytes(about)
    held.close()
    with pytest.raises(UsageError):
        kept.load("fix")


def test_a_state_home_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(HostError, match="XDG_STATE_HOME"):
        KeptOverlays(str(tmp_path / "state")).begin("fix", str(tmp_path))


def test_names_in_mount_options_are_escaped() -> None:
    options = Overlay("fix", "/state,a:b\\c", "/app", 1).options("/.host")
    assert options == (
        "lowerdir=.,upperdir=/.host/state\\,a\\:b\\\\c/data,workdir=/.host/state\\,a\\:b\\\\c/work,userxattr"
    )
    with pytest.raises(UsageError, match="leave out --overlay"):
        Overlay("fix", "/x" * 1500, "/app", 1).options()
