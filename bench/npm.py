"""`npm install` of three packages and all that they need, cold cache, bare and in a session.

It uses the registry that npm is configured for; without a registry that answers nothing is measured.
"""

from __future__ import annotations

import ipaddress
import shutil
import socket
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import place
from figures import Result, Series
from rig import Rig

PACKAGES = ["express", "react", "vite"]
FEWEST = 40  # folders in node_modules after an install that worked
BARE, OURS, SRT = "bare", "netsandbox", "srt"


def contestants(rig: Rig, registry: str, folder: Path) -> dict[str, list[str]]:
    install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    install += ["--cache", str(folder / "cache"), *PACKAGES]
    found = {BARE: install, OURS: rig.product.run(_allow(registry), install)}
    if srt := place.srt([urlsplit(registry).hostname or ""]):
        found[SRT] = [*srt, " ".join(install)]
    return found


def measure(rig: Rig, rounds: int) -> Result:
    result = Result(f"npm install {' '.join(PACKAGES)}, cold cache")
    registry = _registry()
    if registry is None:
        result.notes.append("npm or its registry is not there")
        return result
    series = Series()
    folder = place.WORK / "npm"
    for _ in range(rounds):
        for name, argv in contestants(rig, registry, folder).items():
            seconds, complaint = _install(argv, rig, folder)
            series.add(name, seconds)
            if complaint:
                result.notes.append(f"{name} failed: {complaint}")
    result.table(series, "s", BARE)
    result.aim("npm install against bare", 1.05, series.ratio(OURS, BARE))
    return result


def _install(argv: list[str], rig: Rig, folder: Path) -> tuple[float | None, str]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "package.json").write_text('{"name": "bench", "version": "1.0.0"}\n')
    began = time.perf_counter()
    try:
        done = subprocess.run(
            argv, cwd=folder, env=rig.environment, capture_output=True, text=True, timeout=60, check=False
        )
    except subprocess.TimeoutExpired:
        return None, "no end after a minute"
    seconds = time.perf_counter() - began
    modules = folder / "node_modules"
    if done.returncode == 0 and modules.is_dir() and len(list(modules.iterdir())) >= FEWEST:
        return seconds, ""
    return None, (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]


def _registry() -> str | None:
    if place.find("npm") is None:
        return None
    asked = subprocess.run(
        ["npm", "config", "get", "registry"], capture_output=True, text=True, check=False
    ).stdout.strip()
    try:
        socket.getaddrinfo(urlsplit(asked).hostname, None)
    except OSError:
        return None
    return asked


def _allow(registry: str) -> list[str]:
    """The registry's name, and its addresses if they are private, as for a mirror."""
    parts = urlsplit(registry)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    options = ["--allow-domain", f"{parts.hostname}:{port}"]
    for *_, where in socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM):
        address = ipaddress.ip_address(str(where[0]))
        if not address.is_global:
            text = f"[{address}]" if address.version == 6 else f"{address}/32"
            options += ["--allow-address", f"{text}:{port}"]
    return options
