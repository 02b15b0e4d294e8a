"""The doctor's own tests need a session where they prove one; say plainly when this machine does not give any."""

from __future__ import annotations

import subprocess
import sys

import pytest

UNSHARE = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "true"]


@pytest.fixture(scope="session")
def user_namespaces() -> None:
    if sys.platform != "linux":
        pytest.skip("the doctor proves the Linux backend")
    try:
        tried = subprocess.run(UNSHARE, capture_output=True, text=True, check=False, timeout=10)
    except FileNotFoundError:
        pytest.skip("unshare is missing (package util-linux)")
    if tried.returncode:
        pytest.skip(f"this machine gives no user namespaces: {tried.stderr.strip()}")
