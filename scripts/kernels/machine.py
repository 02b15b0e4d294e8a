"""Builds a machine for an architecture: the kernels, an initramfs for each, and a root disk with Debian's programs.

A machine is kept and used again until its recipe changes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import recipe
from boot import Machine

HERE = Path(__file__).resolve().parent
MIRROR = "NETSANDBOX_DEBIAN_MIRROR"  # for a host whose own archive is not Debian's
MADE_BY = ("hook.py", "initramfs.py", "recipe.py", "guest/init")


def build(architecture: str, releases: Collection[str], folder: Path) -> None:
    """*folder* has `disk` and, for each release, `RELEASE/vmlinuz` and `RELEASE/initramfs`."""
    wanted = recipe.fingerprint(sorted(releases), *((HERE / name).read_bytes() for name in MADE_BY))
    done = folder / "recipe"
    if done.exists() and done.read_text("ascii") == wanted:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for release in sorted(releases):
        _unpack(release, architecture, [f"linux-image-{architecture}"], "kernel", folder / release)
    _unpack(recipe.PROGRAMS_RELEASE, architecture, recipe.PROGRAMS, "disk", folder)
    done.write_text(wanted, "ascii")


def machine(architecture: str, release: str, folder: Path) -> Machine:
    return Machine(architecture, folder, release)


def _unpack(release: str, architecture: str, packages: Collection[str], part: str, out: Path) -> None:
    hook = [sys.executable, str(HERE / "hook.py"), part, str(out)]
    command = recipe.mmdebstrap(release, architecture, tuple(packages), address=debian_mirror(), hook=hook)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
    if done.returncode != 0:
        raise SystemExit(
            f"netsandbox: no machine for {architecture}: mmdebstrap ended with {done.returncode}; see above"
        )


def debian_mirror() -> str:
    """The archive that this host's apt uses."""
    given = os.environ.get(MIRROR)
    if given:
        return given
    policy = subprocess.run(["apt-cache", "policy"], capture_output=True, text=True, check=True).stdout
    found = recipe.mirror(policy)
    if found is None:
        raise SystemExit(f"netsandbox: apt names no archive here; set {MIRROR} to one of Debian")
    return found
