"""What is on the path to exec may load nothing heavy: the policy, the log's writer, `netsandbox run` as a whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HEAVY = set(
    """
    re enum dataclasses typing collections functools json hashlib socket struct ipaddress argparse pathlib contextlib
    logging ctypes inspect unicodedata stringprep tomllib asyncio difflib
    """.split()  # noqa: SIM905 (a literal would take a line a name)
)


def imported(statement: str) -> set[str]:
    root = Path(__file__).resolve().parents[2]
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-S", "-c", statement],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "portmap")},
        capture_output=True,
        text=True,
        check=True,
    )
    return {line.rpartition("|")[2].strip() for line in run.stderr.splitlines() if line.startswith("import time:")}


@pytest.mark.parametrize(
    "statement",
    [
        "import netsandbox.policy.policy",
        "from netsandbox.policy.policy import Policy; Policy(['*.example.com:443'], ['a.example.com'], ['10.0.0.0/8'])",
        "import netsandbox.config.document",
        "import netsandbox.cli.main, netsandbox.cli.run, netsandbox.policy.policy, netsandbox.audit.log",
    ],
)
def test_nothing_heavy_is_loaded_before_exec(statement):
    modules = imported(statement)
    assert "netsandbox.policy.policy" in modules
    assert not modules & HEAVY
    assert not modules & {"netsandbox.policy.explain", "netsandbox.policy.idn", "encodings.idna"}


# Packages of which a launch needs nothing, or only what is named, once the folder's configuration is remembered.
COLD: dict[str, tuple[str, ...]] = {
    "netsandbox.session.approvals": (),
    "netsandbox.runtime.bundle_writer": (),
    "netsandbox.config": ("paths", "cache", "commands", "file_settings"),
    "netsandbox.doctor": (),
    "netsandbox.learn": (),
    "netsandbox.runtime.links": (),
    "netsandbox.backends.seatbelt": (),
    "netsandbox.config.profiles": (),
    "netsandbox.config.registries": (),
    "netsandbox.backends.seatbelt.profile": (),
    "netsandbox.shells": (),
}
OF_FILES = {"netsandbox.config.file_settings"}  # where one of them said something


def is_cold(name: str) -> bool:
    cold = max((package for package in COLD if f"{name}.".startswith(f"{package}.")), key=len, default=None)
    if cold is None:
        return False
    needed, rest = COLD[cold], name[len(cold) + 1 :]
    return not (rest in needed or (needed and not rest))


def loaded_by_launch(netsandbox: Any) -> set[str]:
    """What comes after our own package; before it the interpreter loads what it likes."""
    home = netsandbox.home()
    python, *rest = home.identity.command
    run = home.plainly([python, "-X", "importtime", *rest, "run", "--", "true"])
    assert run.returncode == 0, run.stderr
    names = [line.rpartition("|")[2].strip() for line in run.stderr.splitlines() if line.startswith("import time:")]
    return set(names[names.index("netsandbox") :])


@pytest.mark.usefixtures("user_namespaces")
@pytest.mark.parametrize("settings", [None, '[network]\ndeny_domains = ["example.com"]\n'])
def test_a_launch_that_remembers_its_configuration_loads_nothing_to_read_one(
    netsandbox: Any, settings: str | None
) -> None:
    """By name, since times tell little: whatever of these is loaded is paid for by every launch."""
    if settings is not None:
        folder = netsandbox.home().path / "config" / "netsandbox"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.toml").write_text(settings)
    shutil.rmtree(netsandbox.home().state / "netsandbox", ignore_errors=True)  # a test's home has a cache
    first, second = loaded_by_launch(netsandbox), loaded_by_launch(netsandbox)
    assert {"tomllib", "netsandbox.config.effective"} & first  # it did read something
    assert not second & HEAVY
    assert [name for name in sorted(second) if is_cold(name)] == []
    assert bool(second & OF_FILES) == (settings is not None)
