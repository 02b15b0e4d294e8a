"""What is on the path to exec may load nothing heavy: the policy, the log's writer, `netsandbox run` as a whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
        "import netsandbox.configuration.document",
        "import netsandbox.cli.main, netsandbox.cli.run, netsandbox.policy.policy, netsandbox.audit.log",
    ],
)
def test_nothing_heavy_is_loaded_before_exec(statement):
    modules = imported(statement)
    assert "netsandbox.policy.policy" in modules
    assert not modules & HEAVY
    assert not modules & {"netsandbox.policy.explain", "netsandbox.policy.idn", "encodings.idna"}
