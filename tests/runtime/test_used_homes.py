"""Homes that were used are remembered; one that an earlier session could have filled is not read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox import paths
from netsandbox.errors import HostError
from netsandbox.runtime import used_homes
from netsandbox.runtime.used_homes import CONFIG, STATE, check_home, made_known_state, note_homes


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(paths, "memory_home", lambda: str(tmp_path / "memory"))
    monkeypatch.setattr(used_homes, "memory_home", lambda: str(tmp_path / "memory"))
    return tmp_path


def begin_session() -> None:
    paths.session_state_home()
    os.makedirs(paths.config_home(), exist_ok=True)
    note_homes()


def filled(folder: Path) -> str:
    folder.mkdir(parents=True)
    (folder / "planted").touch()
    return str(folder)


def test_before_any_session_every_home_is_the_users(homes: Path) -> None:
    for kind in (STATE, CONFIG):
        path = filled(homes / kind)
        assert check_home(kind, path) == path


def test_homes_in_use_stay_in_use(homes: Path) -> None:
    begin_session()
    (Path(paths.config_home()) / "config.toml").touch()
    assert check_home(CONFIG, paths.config_home())
    assert check_home(STATE, paths.state_home())
    assert used_homes.used_homes(STATE) == (os.path.realpath(paths.state_home()),)
    before = (homes / "memory" / "homes").stat()
    note_homes()
    assert (homes / "memory" / "homes").stat().st_ino == before.st_ino, "it is written when something changes"


def test_sessions_that_start_at_once_with_homes_of_their_own_are_all_noted(homes: Path) -> None:
    begin_session()
    children = []
    gate, opened = os.pipe()
    for number in range(12):
        child = os.fork()
        if child == 0:
            try:
                os.environ["XDG_STATE_HOME"] = str(homes / f"state-{number}")
                paths.session_state_home()
                os.close(opened)
                os.read(gate, 1)  # its end lets all begin together
                note_homes()
            finally:
                os._exit(0)
        children.append(child)
    os.close(gate)
    os.close(opened)
    for child in children:
        os.waitpid(child, 0)
    known = used_homes.used_homes(STATE)
    assert {f"{homes}/state-{number}/netsandbox" for number in range(12)} <= set(known)


@pytest.mark.attack(228)
@pytest.mark.parametrize(("kind", "advice"), [(STATE, "remove it"), (CONFIG, "netsandbox trust")])
def test_a_new_home_that_holds_files_after_a_session_is_not_read(homes: Path, kind: str, advice: str) -> None:
    begin_session()
    path = filled(homes / "planted")
    with pytest.raises(HostError, match=advice):
        check_home(kind, path)
    (homes / "planted" / "planted").unlink()
    assert check_home(kind, path) == path, "an empty folder says nothing"
    missing = str(homes / "missing")
    assert check_home(kind, missing) == missing


@pytest.mark.attack(228)
def test_a_home_that_was_gone_when_a_session_began_is_a_new_one(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(homes / "gone"))
    begin_session()
    gone = Path(paths.state_home())
    for name in gone.iterdir():
        name.unlink()
    gone.rmdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(homes / "state"))
    begin_session()
    filled(gone)
    with pytest.raises(HostError, match="never used as state"):
        check_home(STATE, str(gone))


@pytest.mark.attack(228)
def test_a_state_home_that_we_make_between_sessions_is_known(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `explain` does, which stores what it read: the next session would call it planted."""
    begin_session()
    monkeypatch.setenv("XDG_STATE_HOME", str(homes / "later"))
    made_known_state()
    (Path(paths.state_home()) / "cache").mkdir()
    used_homes._checked.clear()
    assert check_home(STATE, paths.state_home())
    monkeypatch.setenv("XDG_STATE_HOME", str(homes / "planted"))
    filled(Path(paths.state_home()))
    made_known_state()
    with pytest.raises(HostError, match="was never used"):
        check_home(STATE, paths.state_home())


def test_what_cannot_be_read_is_an_error_and_nothing_is_believed(homes: Path) -> None:
    begin_session()
    (homes / "memory" / "homes").unlink()
    (homes / "memory" / "homes").mkdir()
    assert used_homes.used_homes(STATE) == ()
    with pytest.raises(HostError, match="never used"):
        check_home(STATE, paths.state_home())


def test_a_list_of_somebody_else_is_no_list(homes: Path) -> None:
    begin_session()
    (homes / "memory" / "homes").chmod(0o666)
    assert used_homes.used_homes(STATE) == ()


def test_only_the_newest_are_kept(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(used_homes, "MAX_HOMES", 4)
    for number in range(6):
        monkeypatch.setenv("XDG_STATE_HOME", str(homes / f"state{number}"))
        begin_session()
    assert [Path(path).parent.name for path in used_homes.used_homes(STATE)] == ["state3", "state4", "state5"]


def test_homes_without_variables_are_never_forgotten_for_others(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They count from the first session on, since an earlier version may have used them."""
    monkeypatch.setattr(used_homes, "MAX_HOMES", 4)
    usual = filled(homes / ".local" / "state" / "netsandbox")
    for number in range(6):
        monkeypatch.setenv("XDG_STATE_HOME", str(homes / f"state{number}"))
        begin_session()
    assert usual in used_homes.used_homes(STATE)
    assert check_home(STATE, usual) == usual


@given(st.lists(st.binary(max_size=30), max_size=5))
def test_any_text_in_the_list_names_absolute_paths_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("memory")
    used_homes.replace(str(folder / "homes"), b"\0".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(used_homes, "memory_home", lambda: str(folder))
        assert all(path.startswith("/") for _, path in used_homes._known() or ())


@pytest.mark.attack(228)
@pytest.mark.parametrize("variable", ["XDG_CONFIG_HOME", "NETSANDBOX_PROFILE_DIR"])
def test_a_session_that_reads_no_configuration_adopts_none(
    homes: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """With --no-config nothing is checked, and what an earlier session planted must not count from then on."""
    begin_session()
    planted = homes / "planted"
    folder = filled(planted / "netsandbox" if variable == "XDG_CONFIG_HOME" else planted)
    monkeypatch.setenv(variable, str(planted))
    begin_session()
    assert os.path.realpath(folder) not in used_homes.used_homes(CONFIG)
    with pytest.raises(HostError, match=f"unset {variable}"):
        check_home(CONFIG, folder, variable)
    used_homes.adopt_home(folder)
    assert os.path.realpath(folder) in used_homes.used_homes(CONFIG)
    assert check_home(CONFIG, folder, variable) == folder


def test_a_folder_of_profiles_counts_as_configuration(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETSANDBOX_PROFILE_DIR", filled(homes / "profiles"))
    begin_session()
    assert str(homes / "profiles") in used_homes.used_homes(CONFIG)
