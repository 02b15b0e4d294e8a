"""Places to work in: one directory a session that every account can read, one private home a test.

pytest's own tmp_path is closed to other accounts, and its long names overflow the 107 bytes of a Unix socket's path.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def workshop() -> Iterator[Path]:
    """A directory for the whole run, readable by everyone: certificates, probes, the staged product."""
    path = Path(tempfile.mkdtemp(prefix="nsb-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def short_tmp() -> Iterator[Path]:
    """A directory for one test, with a short name, open to other accounts (Unix sockets live here)."""
    path = Path(tempfile.mkdtemp(prefix="nsb-", dir="/tmp"))
    path.chmod(0o777)  # the ordinary account works in it too
    yield path
    shutil.rmtree(path, ignore_errors=True)


def make_home(owner: int, group: int) -> Path:
    """A home directory for OWNER with the XDG folders in it; the caller removes it."""
    home = Path(tempfile.mkdtemp(prefix="nsb-", dir="/tmp"))
    for name in ("work", "state", "config", "run", "tmp"):
        (home / name).mkdir(mode=0o700)
        os.chown(home / name, owner, group)
    os.chown(home, owner, group)
    return home
