"""Provenance: whether a file is the user's own, or a session may have written it.

A file is the user's if for it, for each link to it, and for each folder on the way that could have been moved

1. no session could write there (`runtime.written_folders`), as in the toolchains and settings of a home, which the
   mode `project` shows read-only; or
2. it is older than the first session that could. The kernel sets this time (ctime) at every change, move and link, and
   nobody else can; or
3. the user trusts the folder that it lies in (`netsandbox trust FOLDER`), and since then it has not changed, or no
   session could write there; or
4. the user can write neither it nor any folder on the way to it: it is the system's.

The content of one file can be trusted too (`netsandbox trust FILE`), which is not checked here. A file with a second
name in another folder may have been written by that name, so it must be older than every session. A session cannot move
the folders above the configuration and the state, so their time does not matter.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping

from netsandbox.config.trust import trusted_since
from netsandbox.paths import config_home, first_session, home, state_home
from netsandbox.policy import shown_files
from netsandbox.policy.file_rules import is_within
from netsandbox.runtime.written_folders import ALWAYS, writers

_MAX_LINKS = 40
_SCRIPT_HEAD = 512


def is_out_of_reach(path: str) -> bool:
    """Whether no session can have written the file at *path*."""
    return _written_step(path, with_folders=True) is None


def untrusted_place(program: str, environment: Mapping[str, str]) -> str | None:
    """The folder whose trust the program needs: that of its toolchain, or the nearest; None if it needs none. The time
    of its folders does not matter, because they change with every other tool in them."""
    step = _written_step(program, with_folders=False)
    if step is None:
        return None
    own = os.path.realpath(home())
    named = (*(f"{own}/{name}" for name in shown_files.TOOLCHAINS), *shown_files.moved_toolchains(environment))
    return next((each for each in named if is_within(step, each) and step != each), os.path.dirname(step))


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


def _written_step(path: str, *, with_folders: bool) -> str | None:
    """The first step on the way to *path* that a session may have made; None if there is none."""
    step = path
    try:
        os.stat(path)  # it exists
        steps = list(_steps(os.path.abspath(path)))
        if not any(_is_writable(step) for step in steps):
            return None
        for step in steps:
            if (with_folders or not stat.S_ISDIR(os.lstat(step).st_mode)) and _is_movable(step) and is_new(step):
                return step
        return None
    except (OSError, ValueError):
        return step


def is_new(step: str) -> bool:
    """Whether a session may have made or changed it, by this or another name, since the user trusted it."""
    state = os.lstat(step)
    times = list(writers(step))
    first = first_session() if _has_name_elsewhere(step, state) else None
    if first is not None:
        times.append((first, ALWAYS))
    trusted = trusted_since(step) if times else 0
    if state.st_ctime_ns < trusted:
        return False
    return any(first <= state.st_ctime_ns and trusted <= last for first, last in times)


def _has_name_elsewhere(path: str, state: os.stat_result) -> bool:
    """Whether a file has a hard link in another folder. Those in its own folder, as rustup makes them, are as safe as
    it is."""
    if not stat.S_ISREG(state.st_mode) or state.st_nlink == 1:
        return False
    with os.scandir(os.path.dirname(path)) as entries:
        return sum(entry.inode() == state.st_ino for entry in entries) < state.st_nlink


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
