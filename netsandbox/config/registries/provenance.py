"""Provenance: whether a file is the user's own, or a session may have written it.

A session on Linux may write nearly everywhere in the user's home, so a file there is used only if

1. the user can write neither it nor any folder on the way to it: it is the system's, or
2. it is older than the first session of this user: the file, each link to it, and the folders on the way that a
   session could have moved. The kernel sets this time (ctime) at every change, move and link, and nobody else can, or
3. the user trusts its present content (`netsandbox trust FILE`), which is not checked here.

A session cannot move the folders above the configuration and the state, so their time does not matter.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from netsandbox.paths import config_home, first_session, state_home

_MAX_LINKS = 40
_SCRIPT_HEAD = 512


def is_out_of_reach(path: str) -> bool:
    """Whether no session can have written the file at *path*."""
    return _is_sound(path, with_folders=True)


def is_old_program(path: str) -> bool:
    """The same for a program. Its folder changes with every other tool in it, so its time does not matter."""
    return _is_sound(path, with_folders=False)


def interpreter(path: str) -> str:
    """The interpreter of the script at *path*: a path, or a name that is searched in PATH; empty for a binary."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            head = os.read(descriptor, _SCRIPT_HEAD)
        finally:
            os.close(descriptor)
    except OSError:
        return ""
    return interpreter_in(head)


def interpreter_in(head: bytes) -> str:
    """The same for the beginning of a script (pure)."""
    if not head.startswith(b"#!"):
        return ""
    words = os.fsdecode(head[2:].partition(b"\n")[0]).split()
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if word[:1] != "-" and "=" not in word]
    return words[0] if words else ""


def _is_sound(path: str, *, with_folders: bool) -> bool:
    try:
        os.stat(path)  # it exists
        steps = list(_steps(os.path.abspath(path)))
        if not any(_is_writable(step) for step in steps):
            return True
        began = first_session()
        if began is None:
            return True
        named = [step for step in steps if with_folders or not stat.S_ISDIR(os.lstat(step).st_mode)]
        return all(os.lstat(step).st_ctime_ns < began for step in named if _is_movable(step))
    except (OSError, ValueError):
        return False


def _steps(path: str) -> Iterator[str]:
    """Every folder and link on the way to the file, with the folders and links that links lead to."""
    waiting = path.split("/")[1:]
    here, links = "", 0
    while waiting:
        name = waiting.pop(0)
        if name in ("", "."):
            continue
        if name == "..":
            here = os.path.dirname(here)
            continue
        step = f"{here}/{name}"
        yield step
        if not os.path.islink(step):
            here = step
            continue
        links += 1
        if links > _MAX_LINKS:
            raise OSError("too many links")
        target = os.readlink(step)
        waiting = target.split("/") + waiting
        here = "" if target.startswith("/") else here


def _is_writable(path: str) -> bool:
    """Whether this user may change what is at *path*, or may get the right to."""
    state = os.lstat(path)
    if state.st_uid == os.geteuid() or os.geteuid() == 0:
        return True
    return not stat.S_ISLNK(state.st_mode) and os.access(path, os.W_OK)


def _is_movable(path: str) -> bool:
    """Whether a session could have moved it. It could not where the user may not write above it, or where every session
    holds it in its place."""
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        return True
    if not _is_writable(os.path.dirname(path)):
        return False
    return not any(f"{os.path.realpath(kept)}/".startswith(f"{path}/") for kept in (config_home(), state_home()))
