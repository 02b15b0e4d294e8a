"""The wheels of a release: from a copy of the sources, by the build hook. Most tests are of the one for Macs."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HELPER = "netsandbox/backends/seatbelt/native/netsandbox-apply"
LIBRARY = "netsandbox_interpose/libnetsandbox_interpose.dylib"
MODULE = "netsandbox_interpose/_native.abi3.so"
BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
# What was made here before: no part of the sources.
UNWANTED = shutil.ignore_patterns(
    *(".git", ".venv", "__pycache__", "tests", "node_modules", ".*_cache", ".hypothesis", "build", "dist"),
    *("*.so", "*.dylib", "netsandbox-init", "netsandbox-apply"),
)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One worker of a run at a time."""
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def copy_sources(folder: Path, sources: Path = ROOT) -> Path:
    return Path(shutil.copytree(sources, folder, ignore=UNWANTED))


def build(sources: Path, folder: Path, platform: str = "macos") -> Path:
    """The wheel, in *folder*."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)],
        cwd=sources,
        env={**os.environ, "NETSANDBOX_BUILD_FOR": platform},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.splitlines()[-1]
