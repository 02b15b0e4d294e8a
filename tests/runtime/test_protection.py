"""Everything of ours is named by every name: what this process runs and may still load, state, and configuration."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from netsandbox.errors import HostError
from netsandbox.paths import config_home, memory_home, packages, state_home, user_can_change
from netsandbox.policy.file_rules import is_within
from netsandbox.runtime import protection, used_homes
from netsandbox.runtime.protection import (
    bytecode_folders,
    code_paths,
    config_paths,
    hidden_homes,
    make_folders,
    own_paths,
)
from netsandbox.runtime.used_homes import note_homes


def covered(path: str) -> bool:
    return any(is_within(os.path.realpath(path), folder) for folder in code_paths())


def test_every_mapped_file_that_could_be_changed_is_named() -> None:
    with open("/proc/self/maps") as file:
        mapped = {line.split(maxsplit=5)[5].strip() for line in file if " /" in line}
    assert mapped
    for path in mapped:
        if os.path.exists(path) and user_can_change(os.path.dirname(path)):
            assert covered(path), path


def test_our_packages_are_named_if_they_could_be_changed() -> None:
    for path in packages():
        if user_can_change(path):
            assert covered(path)


@pytest.mark.parametrize("name", ["bin/python", "pyvenv.cfg", "lib"])
def test_the_whole_virtual_environment_is_named(tmp_path: Path, name: str) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "v"], check=True)
    path = os.pathsep.join(sys.path)
    script = "from netsandbox.runtime.protection import code_paths; print('\\n'.join(code_paths()))"
    done = subprocess.run(
        [tmp_path / "v/bin/python", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    folders = done.stdout.splitlines()
    assert any(is_within(os.path.realpath(tmp_path / "v" / name).removesuffix("/python"), folder) or
               is_within(str(tmp_path / "v"), folder) for folder in folders)  # fmt: skip


@pytest.mark.parametrize(("prefix", "more"), [("/usr", True), ("/usr/local", True), ("/opt/python", False)])
def test_a_prefix_of_many_programs_is_named_in_part(prefix: str, *, more: bool) -> None:
    assert protection._holds_more(prefix, "/home/user") is more


def test_the_local_folder_of_the_home_is_named_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pip install --user`: the launcher lies in ~/.local/bin, where it looks for an interpreter too."""
    local = tmp_path / ".local"
    for name in ("bin", "lib/python3.11", "lib/python3.13", "lib/other", "share"):
        (local / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    real = os.path.realpath(local)
    assert protection._holds_more(real, os.path.dirname(real))
    assert set(protection._parts(real, os.path.dirname(real))) == {
        f"{real}/bin",
        f"{real}/lib/python3.11",
        f"{real}/lib/python3.13",
    }


def test_a_system_without_maps_names_the_rest(tmp_path: Path) -> None:
    assert list(protection._mapped(str(tmp_path / "none"))) == []


def test_bytecode_beside_the_sources_needs_no_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    assert bytecode_folders() == ()
    monkeypatch.setattr(sys, "pycache_prefix", f"{tmp_path}/bytecode/")
    monkeypatch.setattr(sys, "path", ["/usr", "/usr/../usr", str(tmp_path / "missing"), str(tmp_path)])
    assert bytecode_folders() == (f"{tmp_path}/bytecode/usr", f"{tmp_path}/bytecode{tmp_path}")


@pytest.mark.attack(149)
def test_bytecode_folders_of_the_environment_count_for_an_interpreter_that_ignores_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launcher starts an isolated interpreter, but the next `python -m netsandbox` is none."""
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", f"{tmp_path}/bytecode")
    monkeypatch.setattr(sys, "path", ["/usr"])
    for prefix in (None, f"{tmp_path}/bytecode/"):
        monkeypatch.setattr(sys, "pycache_prefix", prefix)
        assert bytecode_folders() == (f"{tmp_path}/bytecode/usr",)
    monkeypatch.setattr(sys, "pycache_prefix", f"{tmp_path}/other")
    assert bytecode_folders() == (f"{tmp_path}/other/usr", f"{tmp_path}/bytecode/usr")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", "")
    assert bytecode_folders() == (f"{tmp_path}/other/usr",)


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "home").mkdir()
    return tmp_path


def usual(homes: Path) -> str:
    return str(homes / "home" / ".config" / "netsandbox")


def test_the_configuration_home_is_made_for_the_user_alone(homes: Path) -> None:
    make_folders()
    assert os.stat(config_home()).st_mode & 0o777 == 0o700


def test_a_configuration_home_that_cannot_be_made_is_left_out(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (homes / "taken").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(homes / "taken"))
    make_folders()
    assert config_home() not in own_paths().read_only


@pytest.mark.attack(226)
def test_each_link_in_a_configuration_home_is_named(homes: Path) -> None:
    """Dotfiles by stow or chezmoi: the files, or whole folders, are links into a repository."""
    make_folders()
    own, dotfiles = Path(config_home()), homes / "dotfiles"
    (dotfiles / "profiles").mkdir(parents=True)
    (dotfiles / "config.toml").touch()
    (dotfiles / "node.toml").touch()
    (own / "projects").mkdir()
    (own / "config.toml").symlink_to(dotfiles / "config.toml")
    (own / "profiles").symlink_to(dotfiles / "profiles")
    (dotfiles / "profiles" / "node.toml").symlink_to("../node.toml")
    (own / "projects" / "0123").symlink_to(dotfiles / "config.toml")
    (own / ".#config.toml").symlink_to("user@host.1:2")  # an editor's lock
    names = {"config.toml", "profiles", "profiles/node.toml", "projects/0123"}
    assert set(config_paths()) == {str(own), usual(homes), *(f"{own}/{name}" for name in names)}


@pytest.mark.attack(226)
def test_linked_folders_are_made_and_other_links_to_nothing_are_an_error(homes: Path) -> None:
    make_folders()
    own = Path(config_home())
    (own / "profiles").symlink_to(homes / "dotfiles")
    make_folders()
    assert (homes / "dotfiles").is_dir()
    assert set(config_paths()) == {str(own), usual(homes), f"{own}/profiles"}
    (own / "config.toml").symlink_to(homes / "gone" / "config.toml")
    with pytest.raises(HostError, match="does not exist, so a command could make it"):
        config_paths()
    (own / "config.toml").unlink()
    (own / "config.toml").symlink_to("config.toml")  # leads round, and lies where no command writes
    assert set(config_paths()) == {str(own), usual(homes), f"{own}/profiles"}


@pytest.mark.attack(228)
def test_every_home_that_was_used_counts(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(homes / name))
        monkeypatch.setenv("XDG_STATE_HOME", str(homes / "state" / name))
        monkeypatch.setattr(protection, "memory_home", lambda: str(homes / "memory"))
        monkeypatch.setattr(used_homes, "memory_home", lambda: str(homes / "memory"))
        for folder in (config_home(), state_home()):
            os.makedirs(folder)
        note_homes()
    assert set(config_paths()) == {usual(homes), *(f"{homes}/{name}/netsandbox" for name in "ab")}
    assert {f"{homes}/state/{name}/netsandbox" for name in "ab"} <= set(hidden_homes())
    assert f"{homes}/memory" in hidden_homes()
    make_folders()
    assert not os.path.exists(usual(homes)), "nothing is made for those who never use it"
    assert usual(homes) not in own_paths().read_only
    os.makedirs(usual(homes))
    assert usual(homes) in own_paths().read_only


def test_without_a_home_the_named_homes_count(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise HostError("no home")

    monkeypatch.setattr(protection, "default_homes", unknown)
    make_folders()
    assert config_paths() == (config_home(),)
    assert hidden_homes() == (state_home(),)


def test_what_is_hidden_exists_and_what_is_kept_is_named(homes: Path) -> None:
    kept = str(homes / "kept")
    found = own_paths(kept, None)
    assert found.hidden == ()
    assert kept in found.read_only
    for folder in (state_home(), memory_home(), str(homes / "logs")):
        os.makedirs(folder)
    assert set(own_paths(logs=str(homes / "logs")).hidden) == {state_home(), memory_home(), str(homes / "logs")}


@pytest.mark.attack(225)
def test_an_installation_of_links_is_named_where_they_lead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, package = tmp_path / "store", tmp_path / "site" / "netsandbox"
    (store / "sub").mkdir(parents=True)
    (package / "sub").mkdir(parents=True)
    for name in ("__init__.py", "sub/deep.py"):
        (store / name).touch()
        (package / name).symlink_to(store / name)
    monkeypatch.setattr(protection, "packages", lambda: [str(package)])
    for name in ("__init__.py", "sub/deep.py"):
        assert covered(str(package / name))
        assert covered(str(store / name))
