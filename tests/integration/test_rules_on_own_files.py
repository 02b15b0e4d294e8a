"""No rule opens what netsandbox itself runs, reads or writes, whatever the rule names (INV-8)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import netsandbox as product

pytestmark = [
    pytest.mark.broker_as_root,
    pytest.mark.usefixtures("user_namespaces"),
]

PACKAGE = Path(product.__file__).parent
INSTALLED = Path(sys.prefix) / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
MODES = ("project", "readable")


@pytest.fixture(params=[PACKAGE, PACKAGE / "audit", INSTALLED, Path(sys.prefix) / "bin"], ids=lambda path: path.name)
def part(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder of ours, without a file that this test is about to plant."""
    folder: Path = request.param
    (folder / "planted").unlink(missing_ok=True)
    yield folder
    (folder / "planted").unlink(missing_ok=True)


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(213)
@pytest.mark.parametrize("mode", MODES)
def test_no_rule_opens_our_code(netsandbox: Any, part: Path, mode: str) -> None:
    run = netsandbox(
        "run",
        "--files",
        mode,
        "--allow-write",
        part,
        "--",
        "sh",
        "-c",
        f"echo x > {part}/planted; mv {part} {part}-moved",
    )
    assert not (part / "planted").exists()
    assert part.exists()
    assert run.returncode != 0


def test_a_folder_beside_our_code_can_be_opened(netsandbox: Any) -> None:
    """The allowed twin."""
    folder = netsandbox.home().path / "beside"
    folder.mkdir()
    run = netsandbox("run", "--allow-write", folder, "--", "sh", "-c", f"echo x > {folder}/planted")
    assert run.returncode == 0
    assert (folder / "planted").exists()


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.ordinary_user
@pytest.mark.parametrize("option", ["--allow-write", "--allow-read"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["sessions", "homes", "cache", ""])
def test_no_rule_opens_our_state(netsandbox: Any, name: str, mode: str, option: str) -> None:
    home = netsandbox.home()
    assert netsandbox("run", "--", "true").returncode == 0
    folder = home.state / "netsandbox" / name
    folder.mkdir(exist_ok=True)
    script = f"ls -A {folder}; echo x > {folder}/planted"
    run = netsandbox("run", "--files", mode, option, folder, "--", "sh", "-c", script)
    assert run.stdout == ""
    assert not (folder / "planted").exists()
