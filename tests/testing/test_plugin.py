"""Users who have netsandbox and do not use the plugin notice nothing of it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

LOADED = """
import sys, pytest
before = set(sys.modules)
import netsandbox.testing.plugin
print(*sorted(set(sys.modules) - before))
"""


def test_it_loads_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"netsandbox", "netsandbox.testing", "netsandbox.testing.plugin"}


def test_a_run_without_it_is_not_sandboxed(project: Any) -> None:
    tests = "import sys\ndef test_x(): assert fetch('OUTSIDE'); assert 'netsandbox.api' not in sys.modules"
    done = project.pytest(test_a=tests)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    done = project.pytest("--netsandbox", "--help")
    assert "--netsandbox-allow" in done.stdout
    assert project.world.forbidden.accepts == 1
