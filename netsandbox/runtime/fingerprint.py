"""What a file or a variable was when it was looked at, in a few characters.

A stamp is compared, never read. It tells nothing of a value: variables may hold passwords, so theirs is a digest.
"""

from __future__ import annotations

import os

from netsandbox.runtime.digest import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ABSENT = "absent"


def stamp(name: str, environment: Mapping[str, str]) -> str:
    """Of the file at a path, of the variable `$NAME`, or of all variables `$PREFIX*` (in any case)."""
    if name[:1] != "$":
        return _file_stamp(name)
    if name[-1:] == "*":
        return _digest(
            "\0".join(f"{each}={environment[each]}" for each in sorted(with_prefix(environment, name[1:-1])))
        )
    value = environment.get(name[1:])
    return ABSENT if value is None else _digest(value)


def with_prefix(environment: Mapping[str, str], prefix: str) -> list[str]:
    """The names of the variables that begin with *prefix*, in any case."""
    return [name for name in environment if name[: len(prefix)].lower() == prefix]


def _file_stamp(path: str) -> str:
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return ABSENT
    return f"{state.st_mtime_ns} {state.st_ctime_ns} {state.st_size} {state.st_mode} {state.st_uid}"


def _digest(text: str) -> str:
    return digest(text.encode("utf-8", "surrogateescape"))
