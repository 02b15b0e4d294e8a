"""Whether this machine gives ordinary programs namespaces: sessions are made of them, so tests say plainly when not."""

from __future__ import annotations

import subprocess
import sys

import pytest

UNSHARE = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "true"]


def _missing() -> str | None:
    if sys.platform != "linux":
        return "sessions run on Linux only"
    try:
        tried = subprocess.run(UNSHARE, capture_output=True, text=True, check=False, timeout=10)
    except FileNotFoundError:
        return "unshare is missing (package util-linux)"
    return None if tried.returncode == 0 else f"this machine gives no user namespaces: {tried.stderr.strip()}"


@pytest.fixture(scope="session")
def user_namespaces() -> None:
    """Skips what cannot run without unprivileged user namespaces."""
    missing = _missing()
    if missing is not None:
        pytest.skip(missing)
