"""`npm install` in a session of a Mac, from a registry on this machine: what is allowed is installed, and only that.

On Linux with Landlock in Seatbelt's place, on a Mac with Seatbelt itself.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox.policy.policy import Policy
from tests.rig.authority import Authority
from tests.rig.canary import Canaries, StreamCanary
from tests.rig.world import ALLOWED, DENIED

QUIET = ("--no-audit", "--no-fund", "--no-update-notifier", "--fetch-retries=0")
# Run by npm after the install: it must get no connection past the door, and what it writes is in the project.
SCRIPT = """
const done = text => require("fs").writeFileSync(process.env.INIT_CWD + "/told", text);
require("net").connect(Number(process.env.CANARY), "127.0.0.1")
  .on("connect", () => done("connected")).on("error", error => done(error.code));
"""


def tarball(manifest: dict[str, Any], script: str) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, text in (("package.json", json.dumps(manifest)), ("after.js", script)):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


class Registry:
    """One package, `small`, under whatever name it is asked by."""

    def __init__(self, canary: Canaries) -> None:
        manifest = {"name": "small", "version": "1.0.0", "scripts": {"postinstall": "node after.js"}}
        self._archive = tarball(manifest, SCRIPT)
        self._manifest = manifest
        self.server: StreamCanary = canary.http(handler=self._answer)

    def _answer(self, method: str, target: str, headers: Any, body: bytes) -> tuple[int, dict[str, str], bytes]:
        if target.endswith(".tgz"):
            return 200, {}, self._archive
        sum_ = base64.b64encode(hashlib.sha512(self._archive).digest()).decode()
        url = f"http://{headers['host']}/small.tgz"
        version = {**self._manifest, "dist": {"tarball": url, "integrity": f"sha512-{sum_}"}}
        page = {"name": "small", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        return 200, {"Content-Type": "application/json"}, json.dumps(page).encode()


@pytest.mark.parametrize("strategy", ["fail", "rewire-port"])
def test_a_package_is_installed_from_an_allowed_registry_and_its_script_gets_nowhere(
    mac: Any, place: Path, canary: Canaries, authority: Authority, strategy: str
) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is missing (package npm)")
    registry, forbidden, elsewhere = Registry(canary), Registry(canary), canary.tcp()
    for name in (ALLOWED, DENIED):
        authority.answer(name, "127.0.0.1")
    (place / "work" / "package.json").write_text('{"name": "shop", "private": true}')
    policy = Policy(
        allow_domains=[f"{ALLOWED}:{registry.server.port}"],
        allow_addresses=[registry.server.address, forbidden.server.address],
    )

    def install(host: str, port: int) -> Any:
        return mac(
            npm,
            "install",
            *QUIET,
            f"--registry=http://{host}:{port}/",
            "small",
            policy=policy,
            env={"npm_config_cache": str(place / "work" / "cache"), "CANARY": str(elsewhere.port)},
            localhost=LocalhostSettings(strategy=strategy, count=4),
            upstream_dns=((authority.host, authority.port),),
        )

    refused = install(DENIED, forbidden.server.port)
    assert refused.returncode != 0
    assert forbidden.server.accepts == 0
    installed = install(ALLOWED, registry.server.port)
    assert installed.returncode == 0, installed.stderr
    assert (place / "work" / "node_modules" / "small" / "after.js").exists()
    assert (place / "work" / "told").read_text() in ("EPERM", "EACCES")
    assert elsewhere.accepts == 0
    assert {record["host"] for record in installed.of("egress") if record["verdict"] == "allow"} == {ALLOWED}
