"""Attempts to write what belongs to the supervisor."""

from __future__ import annotations

import os

from netsandbox.doctor.inside import kernel

MNT_DETACH = 2


def append(path: str, text: str) -> str:
    with open(path, "a") as file:
        file.write(text)
    return "written"


def append_log(state: str, text: str) -> str:
    """The log of this very session, after an attempt to lift whatever covers its folder."""
    kernel.LIBC.umount2(os.fsencode(state), MNT_DETACH)
    session = os.environ.get("NETSANDBOX_SESSION", "none")
    return append(os.path.join(state, "sessions", session, "audit.jsonl"), text)


def move(path: str) -> str:
    """A folder that can be moved away leaves its path free for a forged one."""
    os.rename(path, f"{path}.moved")
    os.rename(f"{path}.moved", path)
    return "the folder was moved"


def open_for_writing(path: str) -> str:
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC))
    return "opened for writing"
