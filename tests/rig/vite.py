"""Vite as npm gives it, installed once a test run through a session that may reach the registry and nothing else."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.account import Identity
from tests.rig.command import CommandLine
from tests.rig.world import need

PACKAGE = "vite@6"
QUIET = ("--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts")
TOOL_SETTINGS = ("npm_config_", "node_extra_ca_certs", "ssl_cert_")


def _ask(*command: str) -> str:
    """What a tool says outside any session; empty when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, timeout=120)
    return done.stdout.strip() if done.returncode == 0 else ""


@pytest.fixture(scope="session")
def vite(caller: Identity, request: pytest.FixtureRequest, user_namespaces: None) -> Iterator[Path]:
    """A node_modules folder with Vite in it, to copy from."""
    npm = need("npm", "npm")
    if not _ask(npm, "view", PACKAGE, "name"):
        pytest.skip("the npm registry that is configured here does not answer")
    registry = _ask(npm, "config", "get", "registry")
    settings = {name: value for name, value in os.environ.items() if name.lower().startswith(TOOL_SETTINGS)}
    line = CommandLine(caller, request)
    try:
        folder = line.home().work
        (folder / "package.json").write_text('{"name": "shop", "private": true}\n')
        install = (npm, "install", *QUIET, "--registry", registry, PACKAGE)
        run = line("run", "--allow-domain", registry, "--", *install, env=settings, timeout=180)
        assert run.returncode == 0, run.stderr
        yield folder / "node_modules"
    finally:
        line.close()
