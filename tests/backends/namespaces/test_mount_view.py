"""What a session sees differently, found on a real disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from netsandbox.backends.linux.file_view import FileView
from netsandbox.backends.namespaces import launch, mount_view
from netsandbox.runtime.protection import OwnPaths, own_paths


def test_state_is_hidden_and_the_log_read_only(tmp_path: Path) -> None:
    """INV-8."""
    log = str(tmp_path / "audit.jsonl")
    found = mount_view.session_view(OwnPaths((str(tmp_path),), (log,)))
    assert found.hidden == (str(tmp_path),)
    assert log in found.read_only
    assert (found.uid, found.gid) == (os.geteuid(), os.getegid())


def test_our_own_code_cannot_be_written(tmp_path: Path) -> None:
    """150: the launcher, its helper and the components lie under a read-only path."""
    import netsandbox_dns
    import netsandbox_proxy

    import netsandbox

    read_only = own_paths().read_only
    for module in (netsandbox, netsandbox_dns, netsandbox_proxy):
        assert module.__file__ is not None
        assert str(Path(module.__file__).parent) in read_only
    assert all(map(os.path.exists, read_only))


def test_the_session_resolves_through_its_own_door(tmp_path: Path) -> None:
    files = {theirs: Path(ours).read_text() for ours, theirs in mount_view.session_view(OwnPaths()).files}
    servers = [line.split()[1] for line in files["/etc/resolv.conf"].splitlines() if line.startswith("nameserver")]
    assert servers == ["127.0.0.1"]
    assert files["/etc/hosts"].startswith("127.0.0.1 localhost\n")


def test_covers_lie_over_their_files_beside_our_own(tmp_path: Path) -> None:
    """INV-8: what another file must hide inside."""
    found = mount_view.session_view(OwnPaths(), (("/ours", "/theirs"), ("/a", "/b")))
    assert found.files[-2:] == (("/ours", "/theirs"), ("/a", "/b"))
    assert {theirs for _, theirs in found.files} == {"/etc/resolv.conf", "/etc/hosts", "/theirs", "/b"}


def test_what_covers_a_file_with_nothing_is_nothing() -> None:
    nothing = Path(launch.FILES, "nothing")
    assert nothing.is_file()
    assert nothing.read_bytes() == b""


def test_every_component_is_out_of_reach(tmp_path: Path) -> None:
    """150: the library that is preloaded and what publishes ports, too."""
    import netsandbox_interpose
    import netsandbox_portmap

    read_only = own_paths().read_only
    for module in (netsandbox_interpose, netsandbox_portmap):
        assert module.__file__ is not None
        assert str(Path(module.__file__).parent) in read_only


@pytest.mark.attack(149)
def test_149_links_to_what_is_kept_stay_with_the_folders_above_them(tmp_path: Path) -> None:
    for name in ("real/state", "links/deep"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "links" / "deep" / "home").symlink_to(tmp_path / "real")
    found = mount_view.session_view(OwnPaths((str(tmp_path / "links" / "deep" / "home" / "state"),)))
    assert found.links == (str(tmp_path / "links" / "deep" / "home"),)
    assert {str(tmp_path / "links" / "deep"), str(tmp_path / "real")} <= set(found.pinned)
    assert mount_view.session_view(OwnPaths((str(tmp_path / "real" / "state"),))).links == ()


def test_what_the_rules_hide_is_covered_and_the_folders_above_it_are_pinned(tmp_path: Path) -> None:
    for name in ("state", "deep/secret"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "deep" / "token").touch()
    folder, token = str(tmp_path / "deep" / "secret"), str(tmp_path / "deep" / "token")
    rules = FileView((folder,), (token,), ("/work",), disks=("/dev/sda",))
    found = mount_view.session_view(OwnPaths((str(tmp_path / "state"),)), rules=rules, closed="/closed")
    assert found.hidden == (str(tmp_path / "state"), folder)
    assert found.covered == (("/closed", token),)
    assert found.writable == ("/work",)
    assert found.files[-1] == ("/dev/null", "/dev/sda")
    assert {str(tmp_path), str(tmp_path / "deep")} <= set(found.pinned)
    assert list(found.pinned) == sorted(found.pinned, key=len)


@pytest.mark.attack(149)
def test_149_what_the_user_could_make_writable_is_held_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command may change the mode of the user's own folder, and then move what is in it."""
    closed = tmp_path / "closed"
    (closed / "a" / "b").mkdir(parents=True)
    (closed / "link").symlink_to("a/b")
    closed.chmod(0o555)
    monkeypatch.setattr(
        mount_view.os, "access", lambda path, mode: False
    )  # as for an ordinary account; root may always
    rules = FileView(folders=(str(closed / "a" / "b"),), links=(str(closed / "link"),))
    found = mount_view.session_view(OwnPaths(), rules=rules)
    assert {str(closed), str(closed / "a")} <= set(found.pinned)
    assert found.links == (str(closed / "link"),)


def test_a_folder_is_ours_if_it_can_be_written_or_made_so(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    assert mount_view.user_can_change(str(own))
    own.chmod(0o500)
    assert mount_view.user_can_change(str(own))
    assert mount_view.user_can_change(str(tmp_path / "nowhere"))  # who cannot tell believes nothing
    assert not _as_another_account(lambda: mount_view.user_can_change("/"))
    assert _as_another_account(lambda: mount_view.user_can_change("/tmp"))


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
