"""A user with a home, a project that he is in, profiles of either, and tools that are scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.trace import Trace


class Scene:
    """Where everything is."""

    def __init__(self, base: Path, request: pytest.FixtureRequest) -> None:
        self._request = request
        self.home, self.project, self.bin = base / "home", base / "home" / "project", base / "bin"
        self.own = base / "config" / "netsandbox" / "profiles"
        self.state = base / "state" / "netsandbox"
        for folder in (self.home, self.project, self.bin, self.own):
            folder.mkdir(parents=True)
        self.trace = Trace(self.bin / "trace")

    def profile(self, name: str, text: str, folder: Path | None = None) -> Path:
        """One of the user's, or of *folder*."""
        path = (folder or self.own) / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def of_project(self, name: str, text: str) -> Path:
        return self.profile(name, text, self.project / ".sandbox" / "profiles")

    def file(self, name: str, text: str = "") -> Path:
        """A file of the project, or (`~/…`) of the home."""
        path = self.home / name[2:] if name.startswith("~/") else self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def tool(self, name: str, script: str) -> None:
        """Asked, it runs in a session."""
        self._request.getfixturevalue("user_namespaces")
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
        path.chmod(0o755)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Scene]:
    made = Scene(tmp_path, request)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", f"{made.bin}:/usr/bin:/bin")
    for name in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
        monkeypatch.delenv(name, raising=False)
    made.tool("npm", "echo https://default.test/")
    monkeypatch.chdir(made.project)
    yield made
    made.trace.close()
