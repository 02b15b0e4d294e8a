"""yarn (both kinds), pnpm, bun and poetry install by their profile alone, from a registry on loopback.

The tools themselves come from the registries that this machine is set to (tests/rig/tools.py).
"""

from __future__ import annotations

import json

import pytest

from tests.integration.test_profiles import Shop, shop  # noqa: F401 (a fixture)
from tests.rig import registries
from tests.rig.registries import PACKAGE, VERSION
from tests.rig.tools import Tools
from tests.rig.world import ALLOWED

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]


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
    "bun": ("bun@1", "~/.npmrc", "registry={}/\n", "bun.lock", '{"lockfileVersion": 1}\n'),
}


@pytest.mark.parametrize("tool", NPM_LIKE)
def test_a_package_manager_of_node_installs_from_the_users_registry(shop: Shop, tools: Tools, tool: str) -> None:  # noqa: F811
    package, settings, said, lock, locked = NPM_LIKE[tool]
    command = tool.partition("-")[0]
    path = path_with(tools.of_npm(package, shop.home.identity), shop)
    url = shop.serve(registries.npm)
    shop.write(settings, said.format(url))
    shop.write("package.json", json.dumps({"name": "shop", "version": "1.0.0", "private": True}))
    shop.write(lock, locked)
    run = shop.run("-v", "--", command, "add", PACKAGE, env=path)
    assert run.returncode == 0, (run.stdout, run.stderr)
    assert f"netsandbox: profile {command}: detected by {lock}\n" in run.stderr
    assert json.loads((shop.home.work / "node_modules" / PACKAGE / "package.json").read_text())["version"] == VERSION
    shop.assert_only_the_registry(run)


PROJECT = f"""
[project]
name = "shop"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["{PACKAGE}"]
[tool.poetry]
package-mode = false
[[tool.poetry.source]]
name = "own"
url = "{{}}/simple/"
"""


def test_poetry_installs_a_project_from_its_trusted_index(shop: Shop, tools: Tools) -> None:  # noqa: F811
    identity = shop.home.identity
    folder = tools.of_pip("poetry", identity)
    url = shop.serve(lambda _: registries.python_index())
    project = shop.write("pyproject.toml", PROJECT.format(url))
    installed = f"virtualenvs/*/lib/python*/site-packages/{PACKAGE}-{VERSION}.dist-info"
    script = f"PYTHONPATH={folder} {identity.python} -m poetry -q install -n && ls -d ~/.cache/pypoetry/{installed}"
    assert shop.world.netsandbox("trust", "--yes", project).returncode == 0
    run = shop.run("poetry", "--allow-read", folder, "--", "sh", "-c", script)
    assert run.returncode == 0, (run.stdout, run.stderr)
    assert (shop.home.work / "poetry.lock").exists()
    assert not (shop.home.path / ".cache" / "pypoetry").exists(), "the environment is the session's"
    shop.assert_only_the_registry(run)
