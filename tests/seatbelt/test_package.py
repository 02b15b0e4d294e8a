"""Importing the package costs the path to exec nothing."""

from __future__ import annotations

import subprocess
import sys

from netsandbox import seatbelt


def test_the_package_itself_imports_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules); import netsandbox.seatbelt;"
        " print(*sorted(set(sys.modules) - before - {'netsandbox', 'netsandbox.seatbelt', 'netsandbox.version'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert done.stdout.split() in ([], ["__future__"])


def test_it_says_where_its_limits_are_written() -> None:
    assert seatbelt.__doc__ is not None
    assert "docs/seatbelt.md" in seatbelt.__doc__
