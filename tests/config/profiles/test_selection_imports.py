"""Once everything was read and asked, a launch with profiles parses nothing, starts nothing and loads nothing heavy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.config.profiles.conftest import Scene

ROOT = Path(__file__).resolve().parents[3]
HEAVY = {
    *(
        "re",
        "json",
        "tomllib",
        "subprocess",
        "threading",
        "difflib",
        "dataclasses",
        "typing",
        "urllib",
        "ssl",
        "socket",
    ),
    *("netsandbox.config.registries.discovery", "netsandbox.config.registries.node"),
    *(
        "netsandbox.config.registries.tool_process",
        "netsandbox.backends.seatbelt.profile.raw_rules",
    ),
}
READ = """
import netsandbox.cli.run
from netsandbox.runtime.option_parser import parse
from netsandbox.cli.run_options import read_config
found = read_config(parse(WORDS, netsandbox.cli.run.OPTIONS, "netsandbox run"))
import sys
sys.stdout.write(repr(found and [name for name, _ in found.profiles]))
"""


def imported(words: list[str]) -> tuple[str, set[str]]:
    """What is found, and the modules that were loaded for it."""
    path = os.pathsep.join(str(ROOT / folder) for folder in ("", "portmap"))
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-S", "-c", READ.replace("WORDS", repr(words))],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in run.stderr.splitlines() if line.startswith("import time:")]
    return run.stdout, {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.parametrize(
    ("files", "words", "found"),
    [
        ([], [], "None"),
        (["package.json"], [], "['node']"),
        ([], ["--profile", "claude"], "['claude']"),
        (["package.json"], ["--profile", "offline"], "['node', 'offline']"),
    ],
)
def test_a_warm_launch_loads_nothing_heavy(scene: Scene, files: list[str], words: list[str], found: str) -> None:
    for name in files:
        scene.file(name)
    cold, first = imported(words)
    assert (cold, "tomllib" in first) == (found, True), "the twin: the first time files are parsed"
    warm, second = imported(words)
    assert warm == found
    assert not second & HEAVY
    assert not any(name.startswith(("netsandbox.config.registries", "netsandbox.config.profiles")) for name in second)
    assert "netsandbox.policy.rules" not in second, "the rules were parsed the first time"
    assert ("netsandbox.policy.policy" in second) == (found != "None"), "without settings the session starts first"
