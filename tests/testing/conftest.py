"""A project whose tests are run by a pytest of its own, with a server that may be reached and one that may not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rig.workshop import ROOT, make_home, remove_folder

FETCH = """
import os, socket, subprocess, urllib.request
import pytest
def fetch(which):
    with urllib.request.urlopen(os.environ[which], timeout=20) as reply:
        return reply.read()
"""


class Project:
    def __init__(self, path: Path, world: Any) -> None:
        self.path = path
        self.world = world
        self.server = world.canary.http(body=b"allowed")
        good, bad = world.urls(self.server.port)
        self.address = good.split("/")[2]
        options = f"--upstream-dns {world.authority.address} --allow-address 127.0.0.1:{self.server.port}"
        ini = f"[pytest]\nasyncio_default_fixture_loop_scope=function\nnetsandbox_options = {options}\n"
        (path / "work/pytest.ini").write_text(ini)
        folders = [str(ROOT), *(str(ROOT / part) for part in ("proxy", "dns", "portmap", "interpose"))]
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "NETSANDBOX"))},
            **{
                "HOME": str(path),
                "GOOD": good,
                "BAD": bad,
                "OUTSIDE": f"http://{world.forbidden.address}/",
                "PYTHONPATH": os.pathsep.join(folders),
            },
            **{f"XDG_{name.upper()}_HOME": str(path / name) for name in ("state", "config")},
        }

    def pytest(self, *arguments: str, **files: str) -> subprocess.CompletedProcess[str]:
        for name, text in files.items():
            (self.path / "work" / f"{name}.py").write_text(FETCH + text)
        plugins = [] if _is_installed() else ["-p", "netsandbox.testing.plugin"]
        command = [sys.executable, "-m", "pytest", "-p", "no:hypothesispytest", *plugins, *arguments]
        return subprocess.run(
            [*command, *(f"{name}.py" for name in files)],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.path / "work",
            env=self.environment,
            timeout=120,
        )


def _is_installed() -> bool:
    from importlib.metadata import entry_points

    return any(entry.value == "netsandbox.testing.plugin" for entry in entry_points(group="pytest11"))


@pytest.fixture
def project(world: Any, user_namespaces: None) -> Iterator[Project]:
    home = make_home(os.geteuid(), os.getegid())
    yield Project(home, world)
    remove_folder(home)
