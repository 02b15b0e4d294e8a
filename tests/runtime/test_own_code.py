"""Everything that this process runs, maps and may still load is named, wherever this user could change it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from netsandbox.paths import packages, user_can_change
from netsandbox.policy.file_rules import is_within
from netsandbox.runtime import own_code
from netsandbox.runtime.own_code import code_paths


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
    script = "from netsandbox.runtime.own_code import code_paths; print('\\n'.join(code_paths()))"
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
    assert own_code._holds_more(prefix) is more


def test_the_local_folder_of_the_home_is_named_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pip install --user`: the launcher lies in ~/.local/bin, where it looks for an interpreter too."""
    local = tmp_path / ".local"
    for name in ("bin", "lib/python3.11", "lib/python3.13", "lib/other", "share"):
        (local / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    real = os.path.realpath(local)
    assert own_code._holds_more(real)
    assert set(own_code._parts(real)) == {f"{real}/bin", f"{real}/lib/python3.11", f"{real}/lib/python3.13"}


def test_a_system_without_maps_names_the_rest(tmp_path: Path) -> None:
    assert list(own_code._mapped(str(tmp_path / "none"))) == []
