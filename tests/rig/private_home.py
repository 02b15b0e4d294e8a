"""A home that only one test has. Sessions and caches of tests must not be found in that of the account: a session marks
what it can write, which later tests, and the user, would find there."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def private_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Also for processes that the test starts, unlike what `tests/conftest.py` changes in this one."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)  # that of the run, where no test may write
    return home
