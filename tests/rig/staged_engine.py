"""mitmproxy for the ordinary account: the product that is staged for it has only what every session needs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest

from tests.rig.account import Identity
from tests.rig.tools import VERSION

_NAME = re.compile(r"[A-Za-z0-9._-]+")
SKIPPED = "mitmproxy/tools/"  # much, and nothing that the engine imports


def stage_engine(identity: Identity) -> None:
    """Put mitmproxy and what it needs beside the product of *identity*, once a test run."""
    site = Path(identity.pythonpath)
    if identity.is_caller or (site / "mitmproxy").exists():
        return
    asked = subprocess.run([identity.python, "-c", VERSION], capture_output=True, text=True, check=True)
    if asked.stdout.strip() != f"{sys.version_info[0]}.{sys.version_info[1]}":
        pytest.skip(f"mitmproxy is compiled for {sys.version_info[:2]}, and the account runs {asked.stdout.strip()}")
    for found in _closure("mitmproxy").values():
        for file in found.files or ():
            if ".." not in file.parts and file.suffix != ".pyc" and not str(file).startswith(SKIPPED):
                target = site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                if not target.exists():  # no hard link: for engines that just start, the original would be changed
                    shutil.copy(str(file.locate()), target)


def _closure(name: str) -> dict[str, Distribution]:
    found: dict[str, Distribution] = {}
    waiting = [name]
    while waiting:
        wanted = waiting.pop()
        if wanted in found or wanted == "dnslib":
            continue
        try:
            found[wanted] = distribution(wanted)
        except PackageNotFoundError:  # not needed by this Python, or on this system
            continue
        for requirement in found[wanted].requires or ():
            if "extra ==" not in requirement and (match := _NAME.match(requirement)):
                waiting.append(match[0].lower())
    return found
