"""Private copies of agents' files, and what of them the host gets back.

A settings file that holds commands beside harmless values (policy/agent_settings.py) lies in the private home, where
the agent looks for it, so that it can replace the file as it always does. In a folder of the host that the session
writes, the copy is mounted over the file, and agents write it in place.

Of an agent's folder (`copy` in its profile) the session changes a copy too: an overlay, or a folder of copied files
where nothing can be mounted. Agents run hooks, plugins and snapshots from there, so of what a session makes only the
files that `allow_write` names reach the host. What the user changes on the host wins over an older copy.
"""

from __future__ import annotations

import json
import os
import stat
from errno import EEXIST, ENOENT

from netsandbox.backends.linux.private_folders import open_folder, read_file, remove_tree
from netsandbox.errors import HostError
from netsandbox.frozen import frozen
from netsandbox.paths import short
from netsandbox.policy.agent_settings import merge, start_with
from netsandbox.runtime.private_file import replace, write_new
from netsandbox.text import few, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

MAX_SIZE = 16 << 20
MAX_WRITTEN = MAX_SIZE // 2  # so that the next session can read it
MAX_NAMES, MAX_DEPTH = 20_000, 12  # in one walk
MAX_COPIED, MAX_FILES, MAX_FOLDERS = 1 << 20, 2000, 4  # bytes of a file, files, and one folder in another
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@frozen
class AgentFile:
    """`path` is the host's real file, `copy` ours, `before` the settings that the session started with."""

    path: str
    copy: str
    before: dict[str, Any]


def make_copy(path: str, copy: str) -> AgentFile:
    """Write the copy for this session. A file that is no JSON is an error: nothing could be merged back."""
    try:
        host = _read(path)
        text = _text(host)
    except (OSError, ValueError, RecursionError) as error:
        raise HostError(
            f"cannot read the settings in {short(path)} ({single_line(str(error))}); repair or remove the file"
        ) from None
    try:
        before = start_with(host, _read(copy))
        text = _text(before)
    except (OSError, ValueError, RecursionError):  # there is no copy, or an earlier session broke it
        before = host
    remove_tree(copy)
    replace(copy, text)
    return AgentFile(path, copy, before)


def take_over(file: AgentFile, project: str) -> list[str]:
    """Give the host the harmless changes; lines about the others."""
    name = single_line(short(file.path))
    try:
        after = _read(file.copy)
        if after == file.before:
            return []
        host = _read(file.path)
        result, told = merge(file.before, after, host, project)
        if result != host:
            text = _text(result)
            if len(text) > MAX_WRITTEN:
                raise ValueError(f"it would be larger than {MAX_WRITTEN} bytes")
            replace(file.path, text, os.stat(file.path).st_mode & 0o777)  # as the agent does it
    except (OSError, ValueError, RecursionError) as error:
        return [f"{name} stays as it was: the session's copy could not be taken over ({single_line(str(error))})"]
    if not told:
        return []
    shown = few(map(single_line, told))
    return [f"{name} of the host does not get {shown}; sessions of this project keep it, and you can set it outside"]


def _read(path: str) -> dict[str, Any]:
    descriptor = os.open(path, _READ)
    with open(descriptor, "rb") as file:
        data = file.read(MAX_SIZE + 1)
    if len(data) > MAX_SIZE:
        raise ValueError(f"it is larger than {MAX_SIZE} bytes")
    settings = json.loads(data.decode("utf-8")) if data.strip() else {}
    if not isinstance(settings, dict):
        raise ValueError("it is not a table")
    return settings


def _text(settings: dict[str, Any]) -> bytes:
    """JSON that every program reads; a ValueError for what has none, such as NaN."""
    text = json.dumps(settings, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:  # half a character, as programs cut texts
        return json.dumps(settings, indent=2).encode("ascii")


def refresh(host: str, copy: str, written: Sequence[str]) -> None:
    """Take from the overlay's folder *copy* what the host changed later, so that the session sees it, and what is in
    the way of the paths *written*, which are mounted. The kernel sets the time that is compared. No session uses *copy*
    now."""
    for each in written:
        _clear(copy, each[len(host) + 1 :], is_folder=os.path.isdir(each))
    for path, made in _walk(copy, MAX_DEPTH):
        if not stat.S_ISDIR(made.st_mode) and _is_newer(f"{host}/{path}", made):
            os.unlink(f"{copy}/{path}")


def fill(host: str, copy: str, written: Sequence[str]) -> None:
    """Copy the small files of the folder *host* to *copy*, unless a session changed its copy later. A link leads to
    each path of *written*."""
    left = MAX_FILES
    for path in written:
        _put(copy, path[len(host) + 1 :], path)
    for path, state in _walk(host, MAX_FOLDERS, written):
        is_wanted = stat.S_ISREG(state.st_mode) and state.st_size <= MAX_COPIED
        if is_wanted and left and not _is_newer(f"{copy}/{path}", state):
            left -= 1
            _put(copy, path, None, f"{host}/{path}")


def give_new(path: str, made: str) -> list[str]:
    """Copy to the host's *path* the file that a session made at *made*. One that the host has by now stays."""
    try:
        data = read_file(made, MAX_SIZE)
        folder = open_folder(os.path.dirname(path))
        try:
            write_new(os.path.basename(path), data, 0o600, folder)
        finally:
            os.close(folder)
    except OSError as error:
        if error.errno in (ENOENT, EEXIST):  # the session made none, or the host did
            return []
        return [f"{single_line(short(path))} stays in the project: {error.strerror}"]
    return []


def _put(top: str, path: str, target: str | None, source: str = "") -> None:
    """A link to *target*, or a copy of the host's file *source*, at *path* below *top*. What an earlier session left on
    the way to it, or there, is removed."""
    place = f"{top}/{path}"
    _clear(top, os.path.dirname(path), is_folder=True)
    os.makedirs(os.path.dirname(place), 0o700, exist_ok=True)
    try:
        if target is not None:
            if os.path.islink(place) and os.readlink(place) == target:
                return
            remove_tree(place)
            os.symlink(target, place)
        else:
            data = read_file(source, MAX_COPIED)
            remove_tree(place)
            write_new(place, data, _mode(source) & 0o700)
    except OSError:  # it is gone, or this user may not read it
        return


def _clear(top: str, path: str, *, is_folder: bool) -> None:
    """Remove the first name of *path* below *top* that is not a folder, or is not what is wanted at its end."""
    names = [name for name in path.split("/") if name]
    for depth in range(1, len(names) + 1):
        place = f"{top}/{'/'.join(names[:depth])}"
        mode = _mode(place)
        wanted = stat.S_ISDIR if is_folder or depth < len(names) else stat.S_ISREG
        if not wanted(mode):
            if mode:
                remove_tree(place)
            return


def _walk(top: str, depth: int, without: Sequence[str] = ()) -> Iterator[tuple[str, os.stat_result]]:
    """All names below *top*, as paths below it, without what is at or below *without*. No link is followed."""
    waiting, walked = [""], 0
    while waiting and walked < MAX_NAMES:
        inner = waiting.pop()
        try:
            names = os.listdir(f"{top}/{inner}")
        except OSError:  # it is gone, or closed
            continue
        for name in names:
            walked += 1
            path = f"{inner}/{name}" if inner else name
            try:
                state = os.lstat(f"{top}/{path}")
            except OSError:
                continue
            if f"{top}/{path}" in without:
                continue
            yield path, state
            if stat.S_ISDIR(state.st_mode) and path.count("/") < depth:
                waiting.append(path)


def _is_newer(path: str, than: os.stat_result) -> bool:
    try:
        return os.lstat(path).st_ctime_ns > than.st_ctime_ns
    except OSError:  # there is none
        return False


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0
