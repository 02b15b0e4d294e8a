"""A user with a home, a project and tools, none of them real unless a test says so. No question leaves loopback."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from netsandbox.config.registries import lookup
from netsandbox.config.registries.discovery import Discovery
from netsandbox.config.registries.lookup import ToolRegistries
from netsandbox.config.trust import trust
from tests.rig.trace import Trace

NOBODY = "http://127.0.0.1:9"  # a proxy that is not there
HOME = Path.home()  # of who runs the tests; a scene has another


class Scene:
    """What one lookup sees."""

    def __init__(self, base: Path, request: pytest.FixtureRequest) -> None:
        self._request = request
        self.home = base / "home"
        self.project = self.home / "work" / "project"
        self.bin = base / "bin"
        self.project.mkdir(parents=True)
        self.bin.mkdir()
        self.trace = Trace(self.bin / "trace")
        self.environment = {"PATH": str(self.bin), "https_proxy": NOBODY, "http_proxy": NOBODY}

    def write(self, path: str, text: str) -> Path:
        """A file, in the project, (`~/…`) in the home, or (`/etc/…`) of the system."""
        file = self.home / path[2:] if path.startswith("~/") else self.project / path
        if path.startswith("/etc/"):
            file = self.home.parent / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        return file

    def trusted(self, path: str, text: str) -> Path:
        """A file that the user has changed after the first session, and said yes to."""
        file = self.write(path, text)
        trust(str(file), file.read_bytes())
        return file

    def tool(self, name: str, script: str, folder: Path | None = None) -> Path:
        """A tool that is a shell script; asked, it runs in a session."""
        self._request.getfixturevalue("user_namespaces")
        file = (folder or self.bin) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
        file.chmod(0o755)
        return file

    def real(self, *names: str) -> None:
        """The tools of this machine, as far as it has them, and what they need to start."""
        self._request.getfixturevalue("user_namespaces")
        for name in names:
            if shutil.which(name) is None:
                pytest.skip(f"{name} is not installed")
        self.environment["PATH"] = os.environ["PATH"]
        for name in ("RUSTUP_HOME", "PYENV_ROOT"):
            place = Path(os.environ.get(name, HOME / f".{name.split('_')[0].lower()}"))
            if os.path.isdir(place):  # not so where we may not even look
                self.environment[name] = str(place)

    def discovery(self) -> Discovery:
        return Discovery(str(self.project), self.environment, str(self.home))

    def discover(self, tool: str) -> ToolRegistries:
        """Without the cache."""
        return lookup.discover(tool, str(self.project), self.environment, str(self.home))

    def hosts(self, tool: str) -> ToolRegistries:
        return lookup.hosts(tool, str(self.project), self.environment, str(self.home))

    def found(self, tool: str) -> dict[str, bool]:
        """Each pattern with whether only the project names it."""
        return {each.pattern: each.project for each in self.discover(tool).registries}


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Scene]:
    monkeypatch.setenv("HOME", str(tmp_path / "own"))  # the session of a query keeps its memory there
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("netsandbox.config.registries.discovery.SYSTEM", str(tmp_path / "etc"))
    made = Scene(tmp_path, request)
    yield made
    made.trace.close()
