"""What integration tests share besides the rig."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def origin(canary: Any, authority: Any) -> tuple[Any, list[str]]:
    """An allowed origin and the options that lead to it."""
    good = canary.http(body=b"reached")
    authority.answer("*.test", "127.0.0.1")
    options = ["--allow-domain", f"allowed.test:{good.port}", "--allow-address", f"127.0.0.1:{good.port}"]
    return good, [*options, "--upstream-dns", authority.address]


@pytest.fixture
def outside(netsandbox: Any) -> Iterator[Path]:
    """A folder of this account that is in none of the temporary folders."""
    parent = next(folder for folder in ("/srv", "/opt", str(Path.home())) if os.access(folder, os.W_OK))
    path = Path(tempfile.mkdtemp(prefix="nsb-", dir=parent))
    path.chmod(0o755)
    identity = netsandbox.home().identity
    os.chown(path, identity.uid, identity.gid)
    yield path
    shutil.rmtree(path, ignore_errors=True)
