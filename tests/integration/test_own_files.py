"""No session writes what netsandbox itself reads: configuration behind links, and homes that other variables name.

Each attack tries to append, to replace and to remove; the file is read afterwards on the host. The twin of each is a
file beside it, which the same command may write.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.usefixtures("user_namespaces"),
    pytest.mark.ordinary_user,
]

MODES = pytest.mark.parametrize("mode", ["project", "readable", "open"])
POLICY = '[network]\nallow_domains = ["kept.example"]\n'
# Tries each way to change "$1"; afterwards the twin "$2" is written.
ATTACK = """
echo planted >> "$1"; echo planted > "$1.new"; mv -f "$1.new" "$1"; ln -sf /etc/passwd "$1"; rm -f "$1"
mv "$(dirname "$1")" "$(dirname "$1").moved"; echo twin > "$2"; echo end
"""


def make(home: Any, name: str, text: str) -> Path:
    """A file in the home on the host, owned by the account."""
    path: Path = home.path / name
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    for each in missing:
        os.chown(each, home.identity.uid, home.identity.gid)
    return path


def link(home: Any, name: str, target: Path) -> None:
    path = home.path / name
    make(home, f"{name}.beside", "")
    path.symlink_to(target)
    os.lchown(path, home.identity.uid, home.identity.gid)


@pytest.mark.attack(226)
@MODES
@pytest.mark.parametrize(
    ("name", "options"),
    [("config.toml", ()), ("config.toml", ("--no-config",)), ("profiles/mine.toml", ()), ("profiles/base.toml", ())],
)
def test_configuration_behind_a_link_cannot_be_rewritten(
    netsandbox: Any, mode: str, name: str, options: tuple[str, ...]
) -> None:
    """The dotfiles are the project, so that every mode may write beside them."""
    home = netsandbox.home()
    target = make(home, f"work/dotfiles/{name}", POLICY)
    link(home, f"config/netsandbox/{name}", target)
    twin = home.path / "work" / "twin"
    allowed = ("--allow-write", str(home.work)) if mode == "readable" else ()
    command = ("run", *options, "--files", mode, *allowed, "--", "sh", "-c", ATTACK, "sh", str(target), str(twin))
    run = netsandbox(*command)
    assert run.stdout == "end\n", run.stderr
    assert twin.read_text() == "twin\n"
    assert not target.is_symlink()
    assert target.read_text() == POLICY


@pytest.mark.attack(226)
def test_a_linked_folder_of_profiles_takes_no_new_profile(netsandbox: Any) -> None:
    home = netsandbox.home()
    folder = make(home, "work/dotfiles/profiles/mine.toml", POLICY).parent
    link(home, "config/netsandbox/profiles", folder)
    run = netsandbox("run", "--no-config", "--", "sh", "-c", f"echo x > {folder}/base.toml; echo end")
    assert run.stdout == "end\n"
    assert sorted(os.listdir(folder)) == ["mine.toml"]


@pytest.mark.attack(226)
def test_a_link_to_nothing_starts_no_session(netsandbox: Any) -> None:
    home = netsandbox.home()
    link(home, "config/netsandbox/profiles/base.toml", home.path / "work" / "later.toml")
    run = netsandbox("run", "--no-config", "--", "sh", "-c", "echo ran")
    assert run.returncode != 0
    assert run.stdout == ""
    assert "does not exist, so a command could make it" in run.stderr


@pytest.mark.attack(228)
@pytest.mark.parametrize("mode", ["readable", "open"])
@pytest.mark.parametrize("first", ["variables", "none"])
def test_homes_of_other_variables_are_closed_in_both_directions(netsandbox: Any, mode: str, first: str) -> None:
    home = netsandbox.home()
    moved = {"XDG_CONFIG_HOME": str(home.path / "c2"), "XDG_STATE_HOME": str(home.path / "s2")}
    usual = {"XDG_CONFIG_HOME": None, "XDG_STATE_HOME": None}
    places = {"variables": (home.path / "c2", home.path / "s2")}
    places["none"] = (home.path / ".config", home.path / ".local/state")
    before, after = (moved, usual) if first == "variables" else (usual, moved)
    assert netsandbox("run", "--", "true", env=before).returncode == 0
    config, state = (folder / "netsandbox" for folder in places[first])
    assert config.is_dir()
    assert state.is_dir()
    files = (config / "config.toml", state / "trust" / "x", state / "cache" / "y", state / "first-session")
    script = (
        f"mkdir -p {state}/trust {state}/cache; ls {state}; for f; do echo planted > $f; done; mv {config} x; echo e"
    )
    options = ("--files", mode, "--allow-write", str(home.path)) if mode == "readable" else ("--files", mode)
    run = netsandbox("run", *options, "--", "sh", "-c", script, "sh", *map(str, files), env=after)
    assert run.stdout == "e\n", run.stderr
    assert config.is_dir()
    assert not any(file.exists() and "planted" in file.read_text() for file in files)


@pytest.mark.attack(228)
@pytest.mark.parametrize("mode", ["readable", "open"])
def test_a_folder_of_profiles_that_a_variable_names_is_out_of_reach(netsandbox: Any, mode: str) -> None:
    home = netsandbox.home()
    own = {"NETSANDBOX_PROFILE_DIR": str(home.path / "shared")}
    make(home, "shared/shop.toml", "[profile]\nabout = 'x'\n[network]\nallow_domains = ['kept.example']\n")
    explained = netsandbox("explain", "-p", "shop", "kept.example", env=own)
    assert explained.returncode == 0, explained.stderr
    assert netsandbox("run", "shop", "--", "true", env=own).returncode == 0
    profile, twin = home.path / "shared" / "shop.toml", home.path / "twin"
    before = profile.read_text()
    options = ("--files", mode, "--allow-write", str(home.path)) if mode == "readable" else ("--files", mode)
    for env in (own, {}):  # a session without the variable protects the folder too
        run = netsandbox("run", *options, "--", "sh", "-c", ATTACK, "sh", str(profile), str(twin), env=env)
        assert run.stdout == "end\n", run.stderr
        assert profile.read_text() == before
        assert twin.read_text() == "twin\n"
    new = home.path / "new"
    script = f"mkdir -p {new}; echo '[profile]' > {new}/node.toml"
    assert netsandbox("run", "--files", "open", "--", "sh", "-c", script).returncode == 0
    refused = netsandbox("run", "node", "--", "echo", "ran", env={"NETSANDBOX_PROFILE_DIR": str(new)})
    assert (refused.returncode != 0, refused.stdout) == (True, "")
    assert "an earlier session may have written it" in refused.stderr
    assert "unset NETSANDBOX_PROFILE_DIR" in refused.stderr


@pytest.mark.attack(228)
@pytest.mark.parametrize("variable", ["XDG_CONFIG_HOME", "XDG_STATE_HOME"])
def test_a_new_home_that_a_session_filled_is_not_read(netsandbox: Any, variable: str) -> None:
    home = netsandbox.home()
    new = home.path / "new"
    script = f"mkdir -p {new}/netsandbox/cache; printf %s '{POLICY}' > {new}/netsandbox/config.toml"
    assert netsandbox("run", "--files", "open", "--", "sh", "-c", script).returncode == 0
    run = netsandbox("run", "--", "echo", "ran", env={variable: str(new)})
    assert run.returncode != 0
    assert run.stdout == ""
    assert "an earlier session may have written it" in run.stderr
    if variable == "XDG_CONFIG_HOME":
        trusted = netsandbox("trust", "--yes", str(new / "netsandbox"), env={variable: str(new)})
        assert "config.toml" in trusted.stdout, trusted.stderr
        assert netsandbox("run", "--", "echo", "ran", env={variable: str(new)}).stdout == "ran\n"
    else:
        assert netsandbox("run", "--", "echo", "ran", env={variable: str(home.path / "fresh")}).stdout == "ran\n"
