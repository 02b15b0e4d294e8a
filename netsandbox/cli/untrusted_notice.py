"""Lines about what a project's files would open and nobody has said yes to."""

from __future__ import annotations

import os

from netsandbox.config.paths import PROJECT_FILES
from netsandbox.paths import short
from netsandbox.text import shell_quoted, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def ignored_lines(ignored: Iterable[tuple[str, str]]) -> list[str]:
    """A line a file: *ignored* are names of settings, or hosts, each with `FILE:PLACE`."""
    by_file: dict[str, list[str]] = {}
    for name, origin in ignored:
        by_file.setdefault(origin.rpartition(":")[0], []).append(name)
    return [_line(file, list(dict.fromkeys(names))) for file, names in by_file.items()]


def _line(file: str, names: list[str]) -> str:
    word = "" if any(os.path.abspath(file).endswith(f"/{name}") for name in PROJECT_FILES) else f" {shell_word(file)}"
    return f"{single_line(short(file))} would open {', '.join(names)}; ignored until you run `netsandbox trust{word}`"


def shell_word(path: str) -> str:
    """*path* as it can be pasted into a shell, whatever its folders are called."""
    quoted = shell_quoted(path)
    return short(path) if quoted == path else single_line(quoted)
