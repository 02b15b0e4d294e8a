"""The clock of files, which goes on in steps of milliseconds: times that a test compares must differ."""

from __future__ import annotations

import time
from pathlib import Path

from netsandbox.config.trust import trust_folder_at
from netsandbox.paths import session_state_home
from netsandbox.runtime.written_folders import EVERYWHERE, release_written, remember_written


def settle(folder: Path) -> None:
    """Wait until a file that is made in *folder* now is newer than everything below it."""
    tick, last = folder / "tick", max((path.lstat().st_ctime_ns for path in folder.rglob("*")), default=0)
    tick.touch()
    while tick.stat().st_ctime_ns <= last:
        tick.touch()
    tick.unlink()


def trust_place(folder: Path) -> None:
    """As `netsandbox trust FOLDER` does, a moment later."""
    settle(folder)
    trust_folder_at(str(folder), time.time_ns())


def begin_sessions() -> None:
    """The first session of a user, which can write everywhere."""
    session_state_home()
    remember_written(EVERYWHERE)
    release_written()
