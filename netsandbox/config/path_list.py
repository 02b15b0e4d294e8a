"""The user's list of paths that sessions in one folder may write: one path a line, with wildcards if needed (pure).

A `#` begins a comment at the start of a line, or after a blank.

The list is in the configuration home, which no session can write, so no command can extend it. Its name is made from
the folder, so the project needs no file.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from netsandbox.config.layer import Layer, Setting
from netsandbox.errors import UsageError
from netsandbox.policy.file_rules import PathRule, path_rule

_COMMENT = re.compile(r"(^|\s+)#.*")


def paths_of(path: str, data: bytes, home: Callable[[], str]) -> tuple[PathRule, ...]:
    """Each path with its line."""
    found = []
    for number, line in enumerate(data.split(b"\n"), 1):
        text = _text(line)
        if text is None or (text and not text.startswith(("/", "~"))):
            raise _unreadable(path, number)
        if text:
            try:
                found.append(path_rule(text, f"{path}:{number}", "/", home))
            except UsageError:
                raise _unreadable(path, number) from None
    return tuple(found)


def _text(line: bytes) -> str | None:
    """The path on the line; '' if it has none, None if it is not text."""
    try:
        text = line.decode("utf-8").strip()
    except UnicodeDecodeError:
        return None
    return _COMMENT.sub("", text)


def _unreadable(path: str, number: int) -> UsageError:
    return UsageError(
        f"Failed to parse config file. File: {path}. Line {number}: Invalid path format;"
        " write a path that begins with / or ~"
    )


def list_layer(path: str, data: bytes, home: Callable[[], str]) -> Layer:
    """The layer that sets `allow_write`; a list without a path sets nothing."""
    rules = paths_of(path, data, home)
    if not rules:
        return Layer(path, {})
    setting = Setting(rules, tuple((rule.path, rule.origin) for rule in rules))
    return Layer(path, {("filesystem", "allow_write"): setting})


def added(data: bytes, path: str) -> bytes:
    """The list with one more path; everything else stays."""
    end = b"" if not data or data.endswith(b"\n") else b"\n"
    return data + end + path.encode("utf-8", "surrogateescape") + b"\n"


def removed(data: bytes, numbers: set[int]) -> bytes:
    """The list without these lines."""
    kept = [line for number, line in enumerate(data.split(b"\n"), 1) if number not in numbers]
    return b"\n".join(kept)
