"""No test changes the home of whoever runs it; where one could, the run fails and the change is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TESTS = """
import os
from pathlib import Path
from netsandbox import paths
from netsandbox.runtime.private_file import replace

def test_names_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    paths.made_state_home()

def test_forgets(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.undo()
    os.makedirs(os.path.join(paths.made_state_home(), "sessions"))

def test_follows_it():
    assert not os.listdir(os.environ["XDG_STATE_HOME"])

def test_configures():
    Path(paths.config_home(), "config.toml").write_text("# changed")

def test_is_noted(tmp_path):
    replace(os.path.expanduser("~/.local/share/netsandbox/homes"), f"S/srv/state\\0S{tmp_path}/state\\0".encode())
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The user's, with a state that no test may see."""
    for name in (".local/state/netsandbox/sessions/old", ".local/share/netsandbox", ".config/netsandbox"):
        (tmp_path / "home" / name).mkdir(parents=True)
    (tmp_path / "home/.config/netsandbox/config.toml").write_text("# mine")
    return tmp_path / "home"


def run(home: Path, *names: str) -> subprocess.CompletedProcess[str]:
    file = home.parent / "test_homes.py"
    file.write_text(TESTS)
    options = ("-q", "-p", "no:cacheprovider", "-p", "tests.rig.own_home", "-c", "/dev/null")
    own = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(f"{file}::{name}" for name in names)],
        cwd=ROOT,
        env={**own, "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_test_with_a_state_home_of_its_own_passes(home: Path) -> None:
    done = run(home, "test_names_its_own")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_test_that_names_none_writes_nothing_into_the_users_and_the_next_finds_nothing(home: Path) -> None:
    before = sorted(home.rglob("*"))
    done = run(home, "test_forgets", "test_follows_it")
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert sorted(home.rglob("*")) == before


def test_a_changed_configuration_fails_the_run_and_is_named(home: Path) -> None:
    done = run(home, "test_configures")
    assert done.returncode == 1, done.stdout
    assert f"the user's own home: {home}/.config/netsandbox/config.toml" in done.stdout


def test_a_folder_of_the_run_in_the_list_of_homes_fails_the_run_and_is_named(home: Path) -> None:
    done = run(home, "test_is_noted")
    assert done.returncode == 1, done.stdout
    (line,) = (line for line in done.stdout.splitlines() if "the user's own home" in line)
    assert line.startswith(f"a test changed the user's own home: {home}/.local/share/netsandbox/homes names ")
    assert line.endswith("/test_is_noted0/state")
