"""Private copies of the settings files of agents (policy/agent_settings.py), and what of them the host gets back.

A copy lies in the private home where the agent looks for the file, so that it can replace the file as it always does.
In a folder of the host that the session writes, the copy is mounted over the file, and agents write it in place.
"""

from __future__ import annotations

import json
import os

from netsandbox.backends.linux.private_folders import remove_tree
from netsandbox.errors import HostError
from netsandbox.frozen import frozen
from netsandbox.paths import short
from netsandbox.policy.agent_settings import merge, start_with
from netsandbox.runtime.private_file import replace
from netsandbox.text import few, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_SIZE = 16 << 20
MAX_WRITTEN = MAX_SIZE // 2  # so that the next session can read it
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
