"""The variables of a command whose private folders have paths of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from netsandbox.backends.broker.landlock_view import LandlockView
from netsandbox.backends.broker.session_variables import session_variables
from netsandbox.backends.broker.temporary_folder import TemporaryFolder
from netsandbox.policy.file_rules import FileRules, PathRule
from netsandbox.runtime.protection import OwnPaths
from netsandbox.settings import RunSettings
from tests.rig.views import home

__all__ = ["home"]


def variables(
    home: Path, outer: dict[str, str], program: str = "true", temporary: Any = None, **settings: Any
) -> tuple[dict[str, str], LandlockView]:
    inner = {name.encode(): value.encode() for name, value in outer.items()}
    chosen = RunSettings(**settings)
    view = LandlockView(chosen.files, inner, str(home / "app"), str(home / "state"))
    view.build(program, OwnPaths(), None)
    found = session_variables(inner, chosen, program, view, temporary)
    return {name.decode(): value.decode() for name, value in found.items()}, view


def test_paths_of_the_home_lead_to_the_private_one_unless_they_are_shown(home: Path) -> None:
    (home / ".nvm").mkdir()
    outer = {
        "HOME": str(home),
        "NVM_DIR": f"{home}/.nvm",
        "PATH": f"{home}/bin:/usr/bin:{home}/.nvm/bin",
        "PWD": f"{home}/app",
        "NEIGHBOUR": f"{home}-other/x",
        "TEXT": f"see {home}/bin",
    }
    found, view = variables(home, outer)
    private = view.folders.home
    assert found["HOME"] == private
    assert found["PATH"] == f"{private}/bin:/usr/bin:{home}/.nvm/bin"
    assert {name: found[name] for name in ("NVM_DIR", "PWD", "NEIGHBOUR", "TEXT")} == {
        name: outer[name] for name in ("NVM_DIR", "PWD", "NEIGHBOUR", "TEXT")
    }


def test_the_root_of_a_container_may_be_the_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/")
    found, view = variables(home, {"XDG_CONFIG_HOME": "/.config", "PATH": "/usr/bin", "PWD": f"{home}/app"})
    assert found == {
        "HOME": view.folders.home,
        "XDG_CONFIG_HOME": f"{view.folders.home}/.config",
        "PATH": "/usr/bin",
        "PWD": f"{home}/app",
    }


@pytest.mark.parametrize("linked", [False, True])
def test_a_moved_folder_outside_of_the_home_is_replaced(home: Path, tmp_path: Path, linked: bool) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    if linked:
        (tmp_path / "link").symlink_to(cache)
    found, view = variables(home, {"XDG_CACHE_HOME": str(tmp_path / "link" if linked else cache)})
    assert found["XDG_CACHE_HOME"] == view.folders.moved("XDG_CACHE_HOME")


def test_variables_of_sockets_are_left_out_unless_a_rule_opens_them(home: Path) -> None:
    outer = {"SSH_AUTH_SOCK": "/run/agent", "DISPLAY": ":0", "TERM": "xterm"}
    assert set(variables(home, outer)[0]) == {"TERM", "HOME"}
    assert set(variables(home, outer, unix_sockets=("/run/agent",))[0]) == {"TERM", "HOME", "SSH_AUTH_SOCK"}


def test_temporary_folders_are_named_where_they_were(home: Path, tmp_path: Path) -> None:
    temporary = TemporaryFolder(str(tmp_path))
    found, _ = variables(home, {"TMP": "/tmp", "XDG_RUNTIME_DIR": "/run/user/1"}, temporary=temporary)
    assert (found["TMPDIR"], found["TMP"], found["XDG_RUNTIME_DIR"]) == (*[temporary.path] * 2, temporary.runtime)
    assert "TEMP" not in found
    plain, _ = variables(home, {"TMP": "/tmp", "XDG_RUNTIME_DIR": "/run/user/1"})
    assert (plain["TMP"], plain.get("TMPDIR")) == ("/tmp", None)
    temporary.close()


def test_the_store_of_pnpm_is_the_private_cache(home: Path) -> None:
    store = home / ".local/share/pnpm/store"
    store.mkdir(parents=True)
    rules = FileRules(caches=(PathRule(str(store), "profile:1"),))
    found, view = variables(home, {}, "pnpm", files=rules)
    assert found["npm_config_store_dir"] == view.root.entries[str(store)].upper
