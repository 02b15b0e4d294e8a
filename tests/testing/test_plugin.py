"""Users who have netsandbox and do not use the plugin notice nothing of it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

LOADED = """
import sys, pytest
before = set(sys.modules)
import netsandbox.testing.plugin
print(*sorted(set(sys.modules) - before))
"""


def test_it_loads_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"netsandbox", "netsandbox.testing", "netsandbox.testing.plugin"}


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
@pytest.mark.parametrize("option", ["--netsandbox-allow=example.com", "--netsandbox-options=--online"])
def test_options_of_a_sandbox_without_one_run_no_test(project: Any, option: str, workers: tuple[str, ...]) -> None:
    """INV-1."""
    tests = "def test_x(): open('ran', 'w')\n"
    done = project.pytest(*workers, option, test_a=tests)
    name = option.partition("=")[0]
    message = f"netsandbox: {name} is given without --netsandbox, and no test has the mark; add --netsandbox"
    assert message in done.stdout + done.stderr
    assert done.returncode == (1 if workers else 4)
    assert not (project.path / "work/ran").exists()
    marked = f"{tests}@pytest.mark.netsandbox\ndef test_marked(): pass\n"
    assert "2 passed" in project.pytest(*workers, option, test_a=marked).stdout


def test_a_run_without_it_is_not_sandboxed(project: Any) -> None:
    tests = "import sys\ndef test_x(): assert fetch('OUTSIDE'); assert 'netsandbox.api' not in sys.modules"
    done = project.pytest(test_a=tests)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    done = project.pytest("--netsandbox", "--help")
    assert "--netsandbox-allow" in done.stdout
    assert project.world.forbidden.accepts == 1
