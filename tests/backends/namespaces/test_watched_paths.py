"""Where learning finds rules a place, and where never, on this host."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.backends.namespaces.file_view import FileView
from netsandbox.backends.namespaces.watched_paths import entry_limits, watched_paths


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "true").mkdir()
    (tmp_path / "home").symlink_to("true")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "true"


def test_the_home_is_meant_by_its_true_path(home: Path) -> None:
    assert entry_limits().home == str(home)


def test_secrets_and_our_own_folders_bear_no_rule(home: Path) -> None:
    found = entry_limits((f"{home}/moved-keys",))
    closed = (".ssh", ".ssh/x", ".cargo", ".config", ".config/netsandbox", ".local/state/netsandbox/x", "moved-keys")
    assert not [name for name in closed if found.permits(f"{home}/{name}")]
    assert [
        name for name in (".cache/pip", ".config/tool", ".cargo/registry", "x") if not found.permits(f"{home}/{name}")
    ] == []
    package = str(Path(__file__).resolve().parents[3] / "netsandbox")
    assert not found.permits(package)
    assert not found.permits(os.path.dirname(package))


def test_where_every_session_may_write_is_not_watched(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/usr")
    (home / "temporary").mkdir()
    view = FileView(folders=("/h/.ssh",), files=("/h/.netrc",))
    places = watched_paths(view, {b"TMPDIR": bytes(home / "temporary")})
    assert {"/usr", "/dev", "/proc", os.path.realpath("/tmp")} <= set(places.writable)
    assert any(str(home / "temporary").startswith(folder) for folder in places.writable)
    assert places.hidden == ("/h/.ssh", "/h/.netrc")
    assert not places.limits.permits("/h/.ssh/x")
