"""Upper layers made by hand, with entries that overlayfs makes and with entries that only an attacker would."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from netsandbox.backends.linux.kept_overlays import Overlay
from netsandbox.backends.namespaces.overlay_files import MAX_DEPTH, content, count_if_many, scan
from netsandbox.errors import NetsandboxError
from netsandbox.policy.overlay_changes import FILE, OTHER, Change

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="whiteouts are devices, which only root makes by hand")


@pytest.fixture
def overlay(tmp_path: Path) -> Overlay:
    (tmp_path / "app/src").mkdir(parents=True)
    (tmp_path / "place/data").mkdir(parents=True)
    (tmp_path / "app/a").write_text("one")
    (tmp_path / "app/src/b").write_text("two")
    return Overlay("fix", str(tmp_path / "place"), str(tmp_path / "app"), 1)


def upper(overlay: Overlay, path: str) -> Path:
    whole = Path(overlay.data, path)
    whole.parent.mkdir(parents=True, exist_ok=True)
    return whole


def whiteout(overlay: Overlay, path: str) -> None:
    os.mknod(upper(overlay, path), stat.S_IFCHR, os.makedev(0, 0))


def listed(overlay: Overlay) -> list[tuple[str, str]]:
    return [(change.path, change.action) for change in scan(overlay).changes]


def test_whiteouts_of_both_kinds_remove(overlay: Overlay) -> None:
    whiteout(overlay, "src")
    upper(overlay, "a").touch()
    os.setxattr(upper(overlay, "a"), "user.overlay.whiteout", b"")
    assert listed(overlay) == [("a", "removed"), ("src", "removed"), ("src/b", "removed")]


def test_an_opaque_folder_replaces(overlay: Overlay) -> None:
    upper(overlay, "src/new").write_text("x")
    assert listed(overlay) == [("src/new", "added")]
    os.setxattr(upper(overlay, "src"), "user.overlay.opaque", b"y")
    assert listed(overlay) == [("src/b", "removed"), ("src/new", "added")]


@pytest.mark.parametrize("name", ["user.overlay.redirect", "user.overlay.metacopy", "trusted.overlay.redirect"])
def test_content_that_lies_elsewhere_is_a_fault(overlay: Overlay, name: str) -> None:
    upper(overlay, "src/x").write_text("x")
    os.setxattr(upper(overlay, "src"), name, b"/../../etc")
    found = scan(overlay)
    assert "overlayfs" in found.trees.upper["src"].fault
    assert "src/x" not in found.trees.upper


def test_a_real_device_is_no_whiteout(overlay: Overlay) -> None:
    os.mknod(upper(overlay, "a"), stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mkfifo(upper(overlay, "pipe"))
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(upper(overlay, "sock")))
        found = {change.path: change for change in scan(overlay).changes}
    assert found["a"] == Change("a", "changed", OTHER)
    assert {found["pipe"].kind, found["sock"].kind} == {OTHER}


def test_files_that_were_only_opened_are_no_changes(overlay: Overlay) -> None:
    upper(overlay, "a").write_text("one")
    assert listed(overlay) == []
    upper(overlay, "a").write_text("eno")
    assert listed(overlay) == [("a", "changed")]


def test_setuid_bits_are_not_read(overlay: Overlay) -> None:
    upper(overlay, "a").write_text("one")
    upper(overlay, "a").chmod(0o6644)
    assert listed(overlay) == []


def test_no_link_is_followed_in_either_layer(overlay: Overlay, tmp_path: Path) -> None:
    """A link in the place of a folder is compared as a link; what it leads to is not looked at."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("canary")
    upper(overlay, "out").symlink_to(secret)
    Path(overlay.folder, "in").symlink_to(secret)
    upper(overlay, "in/key").write_text("planted")
    found = scan(overlay)
    assert listed(overlay) == [("in", "changed"), ("in/key", "added"), ("out", "added")]
    assert "in/key" not in found.trees.host
    assert content(overlay.folder, "in/key", 100) is None
    assert content(overlay.data, "out/key", 100) is None
    assert content(overlay.data, "in/key", 100) == b"planted"


def test_a_link_above_the_folder_is_an_error(overlay: Overlay, tmp_path: Path) -> None:
    (tmp_path / "app").rename(tmp_path / "real")
    (tmp_path / "app").symlink_to(tmp_path / "real")
    with pytest.raises(NetsandboxError, match="netsandbox discard fix"):
        scan(overlay)


def test_a_tree_that_is_too_deep_is_refused(overlay: Overlay) -> None:
    here = os.open(overlay.data, os.O_RDONLY)
    for _ in range(MAX_DEPTH + 2):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    with pytest.raises(NetsandboxError, match="deeper"):
        scan(overlay)


def test_a_bare_repository_of_the_host_is_recognized(overlay: Overlay) -> None:
    Path(overlay.folder, "bare/objects").mkdir(parents=True)
    Path(overlay.folder, "bare/HEAD").touch()
    upper(overlay, "bare/config").touch()
    assert scan(overlay).trees.host["bare/HEAD"].kind == FILE


def test_only_many_names_are_counted(overlay: Overlay, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        upper(overlay, f"d/{number}").touch()
    assert count_if_many(overlay.data) == 0
    monkeypatch.setattr("netsandbox.backends.namespaces.overlay_files.MAX_COUNTED", 3)
    assert count_if_many(overlay.data) >= 3
