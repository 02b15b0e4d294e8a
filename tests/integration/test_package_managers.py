"""yarn (both kinds) and pnpm install by their profile alone, from a registry on loopback.

The tools themselves come from the registries that this machine is set to; where these do not answer, the tests are
skipped and say so.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.integration.test_profiles import Shop, shop  # noqa: F401 (a fixture)
from tests.rig import registries
from tests.rig.registries import PACKAGE, VERSION
from tests.rig.world import ALLOWED, need

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.closed_files]

QUIET = ("--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts")
SOON = ("--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=1000")  # npm's own: 70 seconds


def fetched(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, timeout=180)
    if done.returncode:
        pytest.skip(f"the registry that is configured here has no answer: {done.stderr.strip()[-200:]}")


def of_npm(folder: Path, package: str) -> str:
    """The folder of programs of *package*."""
    fetched(need("npm", "npm"), "install", *QUIET, *SOON, "--prefix", folder, package)
    return str(folder / "node_modules" / ".bin")


def path_with(folder: str, shop: Shop) -> dict[str, str]:  # noqa: F811
    return {"PATH": f"{folder}:{shop.home.identity.path}"}


LATER = f'''npmRegistryServer: "{{}}"
unsafeHttpWhitelist: ["{ALLOWED}"]
enableTelemetry: false
npmMinimalAgeGate: 0
nodeLinker: node-modules
'''
NPM_LIKE = {
    "yarn": ("yarn@1", "~/.yarnrc", 'registry "{}"\n', "yarn.lock", ""),
    "yarn-later": ("@yarnpkg/cli-dist@4", "~/.yarnrc.yml", LATER, "yarn.lock", ""),
    "pnpm": ("pnpm@9", "~/.npmrc", "registry={}/\n", "pnpm-lock.yaml", "lockfileVersion: '9.0'\n"),
}


@pytest.mark.parametrize("tool", NPM_LIKE)
def test_a_package_manager_of_node_installs_from_the_users_registry(shop: Shop, tmp_path: Path, tool: str) -> None:  # noqa: F811
    package, settings, said, lock, locked = NPM_LIKE[tool]
    command = tool.partition("-")[0]
    path = path_with(of_npm(tmp_path / "tool", package), shop)
    url = shop.serve(registries.npm)
    shop.write(settings, said.format(url))
    shop.write("package.json", json.dumps({"name": "shop", "version": "1.0.0", "private": True}))
    shop.write(lock, locked)
    run = shop.run("-v", "--", command, "add", PACKAGE, env=path)
    assert run.returncode == 0, (run.stdout, run.stderr)
    assert f"netsandbox: profile {command}: detected by {lock}\n" in run.stderr
    assert json.loads((shop.home.work / "node_modules" / PACKAGE / "package.json").read_text())["version"] == VERSION
    shop.assert_only_the_registry(run)
