"""`netsandbox uninstall` removes what netsandbox keeps for a user, except logs and what the user wrote."""

from __future__ import annotations

import fcntl
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from netsandbox.backends.linux.private_folders import PrivateFolders
from netsandbox.cli import doctor_fix
from netsandbox.cli import uninstall as subject
from netsandbox.cli.uninstall import main, removal
from netsandbox.errors import HostError, NetsandboxError, UsageError
from netsandbox.paths import new_session_id, session_state_home
from netsandbox.runtime import used_homes
from netsandbox.runtime.imports import Bundle
from netsandbox.runtime.used_homes import note_homes
from netsandbox.runtime.written_folders import is_written
from tests.rig.apparmor import Machine

Left = Callable[[], list[str]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user after a session in ~/shop, which also wrote ~/notes."""
    folder = Path(os.path.realpath(tmp_path)) / "home"
    config = folder / ".config" / "netsandbox"
    config.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(subject, "HOST_LOCKS", str(tmp_path / "ports"))
    monkeypatch.setattr(subject, "LAUNCH", str(tmp_path / "launch.bundle"))
    monkeypatch.setattr(subject, "COMMANDS", str(tmp_path / "commands.bundle"))
    monkeypatch.setattr(sys, "meta_path", [Bundle("", {}), *sys.meta_path])
    for name in ("ports", "launch.bundle", "commands.bundle"):
        (tmp_path / name).touch()
    state = Path(session_state_home())
    note_homes()
    folders = PrivateFolders(str(state), str(folder / "shop"))
    Path(folders.home, ".bashrc").symlink_to(folder / "kept.txt")
    (folder / "kept.txt").write_text("mine")
    for name in ("shop", "notes"):
        folders.remember_written(str(folder / name))
    assert folders.empty_file
    assert folders.empty_folder
    folders.close()
    for name in ("cache/one", "trust/two", "overlays/shop/work/x", "log-heads/three", "ports"):
        (state / name).parent.mkdir(parents=True, exist_ok=True)
        (state / name).write_text("x")
    log = state / "sessions" / new_session_id() / "audit.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text("{}\n")
    return folder


@pytest.fixture
def left(home: Path) -> Left:
    return lambda: sorted(str(path.relative_to(home)) for path in home.rglob("*") if not path.is_dir())


def test_logs_stay_and_it_says_where(
    home: Path, left: Left, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--yes"]) == 0
    state = ".local/state/netsandbox"
    memory = ".local/share/netsandbox"
    first, homes, *marks, head, log, _ = left()
    assert (first, homes) == (f"{memory}/first-session", f"{memory}/homes")
    assert head == f"{state}/log-heads/three"
    assert log.startswith(f"{state}/sessions/")
    assert [mark.startswith(f"{memory}/written/") for mark in marks] == [True, True]
    assert (home / "kept.txt").read_text() == "mine"
    assert not (home / ".config" / "netsandbox").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"home", "empty"}
    assert not any(isinstance(finder, Bundle) for finder in sys.meta_path)
    kept, listed, package = capsys.readouterr().out.splitlines()
    assert kept == "The logs are kept in ~/.local/state/netsandbox."
    assert listed.endswith("is kept in ~/.local/share/netsandbox, for a later installation.")
    assert package == f"Now remove the package: {sys.executable} -m pip uninstall netsandbox"


def test_a_later_installation_knows_the_folders_that_sessions_wrote(home: Path) -> None:
    assert main(["--yes"]) == 0
    assert [is_written(str(home / name)) for name in ("shop", "notes", "other")] == [True, True, False]


@pytest.mark.attack(228)
def test_a_later_installation_reads_no_configuration_that_a_session_may_have_left(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "planted" / "netsandbox"
    planted.mkdir(parents=True)
    (planted / "config.toml").touch()
    assert main(["--yes"]) == 0
    monkeypatch.setattr(used_homes, "_checked", set())
    assert used_homes.check_home(used_homes.CONFIG, str(home / ".config" / "netsandbox")), "the twin: it was used"
    with pytest.raises(HostError, match="an earlier session may have written it"):
        used_homes.check_home(used_homes.CONFIG, str(planted))


def test_what_the_user_wrote_is_the_users(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = home / ".config" / "netsandbox" / "config.toml"
    mine.write_text("")
    (mine.parent / "profiles").mkdir()
    assert main(["--yes"]) == 0
    assert os.listdir(mine.parent) == ["config.toml"]
    assert "Your configuration is kept in ~/.config/netsandbox.\n" in capsys.readouterr().out


def test_nothing_is_removed_without_an_answer_and_lost_changes_are_named(
    left: Left, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = left()
    asked: list[str] = []
    monkeypatch.setattr(subject, "confirm", lambda question: bool(asked.append(question)))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main([]) == 1
    assert (left(), asked) == (before, [])
    (home / ".local/state/netsandbox/overlays/shop/about").touch()
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert main([]) == 1
    assert left() == sorted([*before, ".local/state/netsandbox/overlays/shop/about"])
    assert "The changes in shop were not applied and are lost." in asked[0]


def test_sessions_that_run_are_named_first(home: Path, left: Left) -> None:
    before = left()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subject, "survey", lambda: ([{"name": "shop"}], ["20260101T000000000-0"]))
        with pytest.raises(NetsandboxError, match="2 sessions running; end all with `netsandbox stop --all` first"):
            main(["--yes"])
    (log,) = (home / ".local/state/netsandbox/sessions").glob("*/audit.jsonl")
    with log.open() as held, pytest.MonkeyPatch.context() as patch:  # of a session with other variables
        fcntl.flock(held, fcntl.LOCK_EX)
        patch.setenv("XDG_STATE_HOME", str(home / "state"))
        with pytest.raises(NetsandboxError, match="1 session running"):
            main(["--yes"])
    with pytest.raises(UsageError, match="no arguments"):
        main(["now"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NETSANDBOX_SESSION", "20260101T000000000-0")
        with pytest.raises(HostError, match="run uninstall outside of it"):
            main(["--yes"])
    assert left() == before


def test_the_lock_file_of_all_users_stays_while_a_session_holds_it(home: Path, tmp_path: Path) -> None:
    with (tmp_path / "ports").open() as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        assert main(["--yes"]) == 0
    assert (tmp_path / "ports").exists()


def test_what_cannot_be_removed_is_an_error(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str) -> None:
        raise PermissionError(1, "Operation not permitted", path)

    monkeypatch.setattr(subject, "remove_tree", fail)
    with pytest.raises(NetsandboxError, match="not all of it could be removed"):
        main(["--yes"])


def test_on_a_mac_the_same_is_removed(home: Path, left: Left, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without private homes and overlays, which a Mac does not have."""
    monkeypatch.setattr(subject, "IS_MACOS", True)
    signed = home / ".local" / "state" / "netsandbox-signed"
    signed.mkdir()
    (signed / "helper").touch()
    assert main(["--yes"]) == 0
    assert not signed.exists()
    kept = [name.split("/")[3] for name in left() if name.startswith(".local/state")]
    assert kept == ["log-heads", "sessions"]


@pytest.mark.parametrize(
    ("mark", "command"),
    [
        ("x/pipx_metadata.json", "pipx uninstall netsandbox"),
        ("x/uv-receipt.toml", "uv tool uninstall netsandbox"),
        ("Cellar/netsandbox/0.1/libexec/x", "brew uninstall netsandbox"),
        ("netsandbox-venv/x", "rm -r {} ~/.local/bin/netsandbox ~/.local/share/man/man1/netsandbox.1"),
        ("a venv/x", f"{sys.executable} -m pip uninstall netsandbox"),
    ],
)
def test_the_command_of_each_installer_is_named(tmp_path: Path, mark: str, command: str) -> None:
    file = tmp_path / mark
    file.parent.mkdir(parents=True)
    file.touch()
    assert removal(str(file.parent)) == command.format(file.parent)


def test_a_profile_for_the_helper_is_to_be_removed_first(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is root's, so this command leaves it; and without the package nobody would know it."""
    machine = Machine(tmp_path)
    helper = machine.helper()
    machine.profile.install(helper)
    monkeypatch.setattr(doctor_fix, "PROFILE", machine.profile)
    monkeypatch.setattr(doctor_fix, "HELPER", helper)
    assert main(["--yes"]) == 0
    *_, profile, package = capsys.readouterr().out.splitlines()
    assert profile.startswith("The AppArmor profile for the helper is kept. First remove it: sudo ")
    assert profile.endswith("doctor --fix --remove")
    assert package.startswith("Now remove the package")
    assert machine.file.exists()
