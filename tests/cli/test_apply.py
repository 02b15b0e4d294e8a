"""`netsandbox apply`: what is applied, what is left, and what the user is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.backends.linux.kept_overlays import KeptOverlays
from netsandbox.cli.main import dispatch
from netsandbox.config.registries.provenance import untrusted_place
from netsandbox.errors import HostError, NetsandboxError, UsageError
from netsandbox.paths import state_home
from netsandbox.runtime.written_folders import release_written, remember_written
from tests.cli.test_changes import Put, app, put  # noqa: F401 (fixtures)
from tests.rig.file_clock import settle


def kept() -> list[str]:
    return KeptOverlays(state_home()).names()


def test_all_is_applied_and_nothing_kept(app: Path, put: Put, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    put("a", "two\n")
    put("src/new", "x")
    assert dispatch(["apply", "fix"]) == 0
    assert (app / "a").read_text() == "two\n"
    assert "2 changes applied to ~/app" in capsys.readouterr().err
    assert kept() == []


@pytest.mark.attack(228)
def test_what_is_applied_is_not_covered_by_an_earlier_trust(app: Path, put: Put) -> None:  # noqa: F811
    """Trust is for what the user has seen in the folder, and the overlay was not in it."""
    remember_written(str(app))
    release_written()
    (app / "src").mkdir(exist_ok=True)
    settle(app)
    assert dispatch(["trust", "--yes", str(app)]) == 0
    put("src/new", "x")
    assert dispatch(["apply", "fix"]) == 0
    assert untrusted_place(str(app / "src/new"), {}) == str(app / "src")
    assert untrusted_place(str(app / "a"), {}) is None, "the twin: it was there"


def test_named_paths_are_applied_and_the_rest_is_kept(app: Path, put: Put) -> None:  # noqa: F811
    put("a", "two\n")
    put("src/new", "x")
    assert dispatch(["apply", "fix", "src"]) == 0
    assert (app / "a").read_text() == "one\n"
    assert kept() == ["fix"]
    assert dispatch(["apply", "fix", str(app / "a")]) == 0
    assert kept() == []


def test_what_is_protected_stays_until_it_is_named(app: Path, put: Put, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    put(".envrc", "x")
    put("src/new", "x")
    assert dispatch(["apply", "fix"]) == 1
    assert "obey .envrc" in capsys.readouterr().err
    assert (app / "src/new").exists()
    assert dispatch(["apply", "fix", "."]) == 1
    assert not (app / ".envrc").exists()
    capsys.readouterr()
    assert dispatch(["apply", "fix", ".envrc"]) == 0
    assert "1 change applied to ~/app" in capsys.readouterr().err
    assert (app / ".envrc").exists()
    assert kept() == []


def test_a_conflict_refuses_everything(app: Path, put: Put) -> None:  # noqa: F811
    put("a", "two\n")
    put("src/new", "x")
    (app / "a").write_text("host\n")
    with pytest.raises(NetsandboxError, match="nothing was applied"):
        dispatch(["apply", "fix"])
    assert not (app / "src/new").exists()
    assert dispatch(["apply", "fix", "--force"]) == 0
    assert (app / "a").read_text() == "two\n"


def test_a_tree_with_foreign_attributes_is_refused_whole(app: Path, put: Put) -> None:  # noqa: F811
    put("b", "x")
    os.setxattr(put("src/new", "x").parent, "user.overlay.redirect", b"/../../etc")
    for options in ((), ("--force",), ("src/new",)):
        with pytest.raises((NetsandboxError, UsageError)):
            dispatch(["apply", "fix", *options])
    assert not (app / "b").exists()
    assert dispatch(["apply", "fix", "b"]) == 0


def test_special_files_are_named(app: Path, put: Put, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    os.mkfifo(put("src/new", "x").parent / "pipe")
    assert dispatch(["apply", "fix"]) == 0
    assert "'src/pipe' is a socket, a pipe or a device" in capsys.readouterr().err
    assert os.listdir(app / "src") == ["new"]


def test_special_files_do_not_keep_the_overlay_if_the_whole_folder_is_named(app: Path, put: Put) -> None:  # noqa: F811
    os.mkfifo(put("src/new", "x").parent / "pipe")
    assert dispatch(["apply", "fix", "."]) == 0
    assert kept() == []


def test_the_rest_of_a_merged_configuration_is_not_to_be_named(
    app: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    """The host's file has changed by then, so that `apply .git/config` would be refused."""
    (app / ".git").mkdir()
    (app / ".git/config").write_text("[core]\n")
    put: Put = request.getfixturevalue("put")  # noqa: F811
    put(".git/config", '[core]\n\thooksPath = x\n[remote "up"]\n\turl = https://example.com/x\n')
    assert dispatch(["apply", "fix"]) == 1
    told = capsys.readouterr().err
    assert "does not get core.hookspath" in told
    assert "the rest of .git/config is kept; `netsandbox discard fix` removes it" in told
    assert "name each" not in told
    config = (app / ".git/config").read_text()
    assert "https://example.com/x" in config
    assert "hooksPath" not in config
    assert kept() == ["fix"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "needs the NAME"),
        (["fix", "gone"], "no changes"),
        (["fix", "../x"], "not in"),
        (["fix", "/etc/x"], "not in"),
    ],
)
def test_wrong_words_are_errors(app: Path, put: Put, words: list[str], message: str) -> None:  # noqa: F811
    put("b", "x")
    with pytest.raises(UsageError, match=message):
        dispatch(["apply", *words])
    assert not (app / "b").exists()


def test_a_running_session_is_not_applied(app: Path, put: Put) -> None:  # noqa: F811
    put("b", "x")
    held = KeptOverlays(state_home()).hold("fix")
    with pytest.raises(HostError, match="netsandbox stop fix"):
        dispatch(["apply", "fix"])
    held.close()
    assert not (app / "b").exists()
