"""The home of whoever runs the tests, which no test changes.

Each test has a state home of its own, also one that names none or undoes what its fixtures set. The end of the run
looks at what no variable moves: the user's configuration, and the list in which each session notes the homes that it
uses. Others of this account may use netsandbox meanwhile, so only the lines count that name a folder of this run.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from netsandbox.paths import config_home, home

Files = dict[str, tuple[int, int]]
LIST = ".local/share/netsandbox/homes"  # of `runtime.used_homes`, in the user's home
_state = pytest.StashKey[str]()
_configured = pytest.StashKey[Files]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.stash[_state] = os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="nsb-state-")
    config.stash[_configured] = _files(config_home())


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.stash[_state], ignore_errors=True)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """The next test finds it empty."""
    yield
    with os.scandir(item.config.stash[_state]) as entries:
        for entry in entries:
            shutil.rmtree(entry.path, ignore_errors=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if hasattr(config, "workerinput"):  # the process that started the workers looks, at their folders too
        return
    places = config.stash[_state], str(config._tmp_path_factory.getbasetemp())  # type: ignore[attr-defined]
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    for change in (*changed(config.stash[_configured], _files(config_home())), *noted(*places)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if reporter is not None:
            reporter.line(f"\na test changed the user's own home: {change}", red=True)


def changed(before: Files, after: Files) -> list[str]:
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def noted(*places: str) -> list[str]:
    """What the user's list of homes says of folders in *places*."""
    listed = Path(home(), LIST)
    lines = listed.read_bytes().split(b"\0") if listed.exists() else []
    return [f"{listed} names {os.fsdecode(line[1:])}" for line in lines if line[1:].startswith(_encoded(places))]


def _encoded(places: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(os.fsencode(place) for place in places)


def _files(folder: str) -> Files:
    found = [(str(path), path.lstat()) for path in Path(folder).rglob("*")]
    return {path: (status.st_mtime_ns, status.st_size) for path, status in found}
