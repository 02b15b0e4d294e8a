"""Importing the package costs the path to exec nothing."""

from __future__ import annotations

import subprocess
import sys

from netsandbox.backends.seatbelt import profile


def test_the_package_itself_imports_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules); import netsandbox.backends.seatbelt.profile;"
        " print(*sorted(set(sys.modules) - before - {'netsandbox', 'netsandbox.backends', "
        "'netsandbox.backends.seatbelt', 'netsandbox.backends.seatbelt.profile'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert done.stdout.split() in ([], ["__future__"])


def test_it_says_where_its_limits_are_written() -> None:
    assert profile.__doc__ is not None
    assert "docs/seatbelt-profile.md" in profile.__doc__
