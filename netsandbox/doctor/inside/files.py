"""Attempts to write what belongs to the supervisor."""

from __future__ import annotations

import os

from netsandbox.doctor.inside import kernel

MNT_DETACH = 2


def append(path: str, text: str) -> str:
    with open(path, "a") as file:
        file.write(text)
    return "written"


def read(path: str) -> str:
    with open(path, "rb") as file:
        return f"read {len(file.read(4096))} bytes"


def read_log(state: str) -> str:
    """The log of this very session."""
    return read(_log(state))


def listing(path: str) -> str:
    return f"{len(os.listdir(path))} names seen"


def append_log(state: str, text: str) -> str:
    """The log of this very session, after an attempt to lift whatever covers its folder."""
    if hasattr(kernel.LIBC, "umount2"):
        kernel.LIBC.umount2(os.fsencode(state), MNT_DETACH)
    return append(_log(state), text)


def _log(state: str) -> str:
    session = os.environ.get("NETSANDBOX_SESSION", "none")
    return os.path.join(state, "sessions", session, "audit.jsonl")


def move(path: str) -> str:
    """A folder that can be moved away leaves its path free for a forged one."""
    os.rename(path, f"{path}.moved")
    os.rename(f"{path}.moved", path)
    return "the folder was moved"


def open_for_writing(path: str) -> str:
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC))
    return "opened for writing"
