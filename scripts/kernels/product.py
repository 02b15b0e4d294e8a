"""What is tested: the wheel of a release with its dependencies, an environment in /opt. And the programs of guest/."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

from cases import Case
from recipe import PLATFORMS, PYTHON, fingerprint

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GUEST_PROGRAMS = ("prepare.py", "smoke.py", "inside.py")
CONFIGURATION = "home = /usr/bin\ninclude-system-site-packages = false\n"  # pyvenv.cfg


def install(architecture: str, folder: Path) -> Path:
    """The environment for the guest's Python: the wheel of these sources, and its dependencies."""
    prefix, wheels = folder / "netsandbox", folder / "wheels"
    kept = dependencies(architecture, folder)
    for old in (prefix, wheels):
        shutil.rmtree(old, ignore_errors=True)
    environment = {**os.environ, "NETSANDBOX_BUILD_FOR": PLATFORMS[architecture]}
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if built.returncode != 0:
        raise SystemExit(f"netsandbox: no wheel for {architecture}: {built.stdout}{built.stderr}")
    packages = prefix / "lib" / f"python{PYTHON}" / "site-packages"
    shutil.copytree(kept, packages, symlinks=True)
    (wheel,) = wheels.glob("*.whl")
    fetch(architecture, packages, "--no-deps", str(wheel))
    (prefix / "bin").mkdir()
    shutil.move(packages / "bin" / "netsandbox", prefix / "bin")
    for name in ("python3", f"python{PYTHON}"):
        (prefix / "bin" / name).symlink_to(f"/usr/bin/python{PYTHON}")
    (prefix / "pyvenv.cfg").write_text(CONFIGURATION, "ascii")
    return prefix


def dependencies(architecture: str, folder: Path) -> Path:
    """What pyproject.toml names, fetched once: a later run needs no network."""
    names = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    kept = folder / f"dependencies-{fingerprint(names, PYTHON)[:16]}"
    if not kept.exists():
        fetch(architecture, folder / "fetched", *names)
        shutil.rmtree(folder / "fetched" / "bin", ignore_errors=True)
        (folder / "fetched").rename(kept)
    return kept


def fetch(architecture: str, target: Path, *wanted: str) -> None:
    """pip installs for another system if everything is a wheel."""
    platform = PLATFORMS[architecture]
    command = [
        *(sys.executable, "-m", "pip", "--disable-pip-version-check", "-qq", "install", "--no-compile"),
        *("--only-binary=:all:", "--implementation", "cp", "--python-version", PYTHON),
        *("--platform", platform, "--platform", platform.replace("_2_17_", "2014_")),
        *("--target", str(target), *wanted),
    ]
    if subprocess.run(command, check=False).returncode != 0:
        raise SystemExit(f"netsandbox: pip cannot install {' '.join(wanted)} for {platform}; see above")


def plan(case: Case) -> dict[str, Any]:
    """What the guest must know of a case; it does not know what is expected."""
    return {
        "sysctls": dict(case.sysctls),
        "steps": list(case.steps),
        "checks": list(case.checks),
        "backends": list(case.expected),
    }


def pack(prefix: Path, case: Case, payload: Path) -> None:
    """A tar archive, which the guest reads from a drive."""
    with tarfile.open(payload, "w", format=tarfile.PAX_FORMAT) as archive:
        archive.add(prefix, "netsandbox", filter=_by_root)
        for name in GUEST_PROGRAMS:
            archive.add(HERE / "guest" / name, f"kernel-test/{name}", filter=_by_root)
        data = json.dumps(plan(case)).encode()
        entry = tarfile.TarInfo("kernel-test/plan.json")
        entry.size, entry.mode = len(data), 0o644
        archive.addfile(entry, io.BytesIO(data))


def _by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry
