"""A made-up home, and the view that a session in it would have."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from netsandbox.backends.linux.project_view import ProjectView
from netsandbox.backends.linux.session_root import SessionRoot
from netsandbox.policy.file_rules import FileRules
from netsandbox.runtime.protection import OwnPaths

Build = Callable[..., tuple[SessionRoot, ProjectView]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "home"
    (folder / "app").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def build(home: Path) -> Build:
    def make(
        rules: FileRules | None = None, own: OwnPaths | None = None, working: str = "app", **environment: str
    ) -> tuple[SessionRoot, ProjectView]:
        inside = {name.encode(): value.encode() for name, value in environment.items()}
        view = ProjectView(rules or FileRules(), inside, str(home / working), str(home / "state"))
        return view.build("true", own or OwnPaths(), None), view

    return make
