"""Places to work in: one directory a session that every account can read, one private home a test.

pytest's own tmp_path is closed to other accounts, and its long names overflow the 107 bytes of a Unix socket's path.
What is made here is gone when the run ends, and so is what netsandbox makes in the temporary folder of the run.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
OURS = ("ns-", "nsb-", "netsandbox")  # how the names begin that we give; tools keep their caches there too
_made: list[Path] = []


def make_folder(mode: int = 0o700) -> Path:
    """A folder with a short name; the caller removes it."""
    path = Path(tempfile.mkdtemp(prefix="nsb-", dir="/tmp"))
    path.chmod(mode)
    _made.append(path)
    return path


def remove_folder(path: Path) -> None:
    """Gone, or an error that says what is in the way. A process that is just ending may still write into it."""
    for _ in range(20):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
        time.sleep(0.1)
    shutil.rmtree(path)


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Set up before all others, so it looks after them. Only what this process made counts."""
    before = os.environ.get("TMPDIR")
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())  # where pytest keeps its own
    own = make_folder(0o1777)
    os.environ["TMPDIR"] = tempfile.tempdir = str(own)
    yield
    tempfile.tempdir = None
    os.environ.pop("TMPDIR") if before is None else os.environ.update(TMPDIR=before)
    left = [path for path in (*own.iterdir(), *_made) if path.name.startswith(OURS) and path.exists() and path != own]
    shutil.rmtree(own, ignore_errors=True)
    assert not left, f"the run left behind {[f'{path}: {_content(path)}' for path in left]}"


def _content(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))[:9]


@pytest.fixture(scope="session")
def workshop() -> Iterator[Path]:
    """A directory for the whole run, readable by everyone: certificates, probes, the staged product."""
    path = make_folder(0o755)
    yield path
    remove_folder(path)


@pytest.fixture
def short_tmp() -> Iterator[Path]:
    """A directory for one test, with a short name, open to other accounts (Unix sockets live here)."""
    path = make_folder(0o777)  # the ordinary account works in it too
    yield path
    remove_folder(path)


def make_home(owner: int, group: int) -> Path:
    """A home directory for OWNER with the XDG folders in it; the caller removes it."""
    home = make_folder()
    for name in ("work", "state", "config", "run", "tmp"):
        (home / name).mkdir(mode=0o700)
        os.chown(home / name, owner, group)
    os.chown(home, owner, group)
    return home
