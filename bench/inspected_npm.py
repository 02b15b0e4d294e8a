"""`npm install` of packages that are on loopback, cold cache: in a session with inspection and in one without.

Each package is one request for its description and one for its archive. npm trusts the CA of the server, or that of the
session, by NODE_EXTRA_CA_CERTS. A user whose npm has a `cafile` makes it slower: npm makes a list of CAs for each
connection from it, and in a session that inspects it has the system's CAs, 140 of them. The third one shows that.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import random
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

import place
from figures import Result, Series
from rig import Rig
from servers import ORIGIN

PACKAGES = 150
SIZES = (2_000, 60_000)  # bytes of an archive, which do not compress
LIMIT = 1.15
TRUST, CAFILE = ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"), "npm_config_cafile"
PLAIN, OURS, WITH_FILE = "without inspection", "inspected", "inspected, npm has a cafile"


def measure(rig: Rig, rounds: int) -> Result:
    result = Result("npm install, inspected and not")
    if place.find("npm") is None:
        result.notes.append("npm is not there")
        return result
    rig.product.mitmdump  # noqa: B018 (it installs what inspection needs)
    registry = f"https://{ORIGIN}:{rig.origin.secure}/registry/"
    _publish(rig.origin.files / "registry", registry)
    inspects = [*rig.to_origin, "--inspect", f"{ORIGIN}:{rig.origin.secure}"]
    series = Series()
    contestants = {PLAIN: (rig.to_origin, []), OURS: (inspects, []), WITH_FILE: (inspects, [CAFILE])}
    for turn in range(rounds + 1):
        for name, (options, more) in contestants.items():
            seconds, complaint = _install(rig, options, [*TRUST, *more], registry)
            if turn:  # the first turn only warms
                series.add(name, seconds)
            if complaint:
                result.notes.append(f"{name} failed: {complaint}")
    result.table(series, "s", PLAIN)
    result.aim(f"npm install, {2 * PACKAGES} requests, inspected against not", LIMIT, series.ratio(OURS, PLAIN))
    return result


def _publish(folder: Path, registry: str) -> None:
    """Each package needs the next ten, so that npm finds them step by step, as real ones."""
    folder.mkdir()
    (folder / "-").mkdir()
    source = random.Random(14)
    for number in range(PACKAGES):
        name = f"package-{number}"
        needs = {f"package-{other}": "1.0.0" for other in range(10 * number + 1, 10 * number + 11) if other < PACKAGES}
        manifest = {"name": name, "version": "1.0.0", "dependencies": needs}
        archive = _archive(manifest, source.randbytes(source.randint(*SIZES)))
        (folder / "-" / f"{name}-1.0.0.tgz").write_bytes(archive)
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()
        dist = {"tarball": f"{registry}-/{name}-1.0.0.tgz", "integrity": integrity}
        versions = {"1.0.0": {**manifest, "dist": dist}}
        document = {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": versions}
        (folder / name).write_text(json.dumps(document))


def _archive(manifest: dict[str, object], content: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, data in (("package.json", json.dumps(manifest).encode()), ("index.js", content)):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(made.getvalue(), 1)


def _install(rig: Rig, options: list[str], trusting: list[str], registry: str) -> tuple[float | None, str]:
    folder = place.PROJECT / "npm"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "package.json").write_text('{"name": "bench", "version": "1.0.0"}\n')
    shutil.copy(rig.origin.certificate, folder / "ca.pem")
    install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    install += ["--cache", str(folder / "cache"), "--registry", registry, "--fetch-retries=0", "package-0"]
    trust = {**dict.fromkeys(trusting, str(folder / "ca.pem")), "npm_config_globalconfig": os.devnull}
    began = time.perf_counter()
    done = subprocess.run(
        rig.product.run(options, install),
        cwd=folder, env={**rig.environment, **trust}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    modules = folder / "node_modules"
    if done.returncode == 0 and len(list(modules.glob("package-*"))) == PACKAGES:
        return seconds, ""
    return None, (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
