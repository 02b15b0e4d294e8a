"""One thing that is wrong with a profile. Pure."""

from __future__ import annotations

from dataclasses import dataclass

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Finding:
    """`check` is a short fixed name for programs; `text` a sentence that ends in what to do."""

    line: int
    severity: str
    check: str
    text: str
    source: str = ""  # the imported profile it is in; empty for the profile itself


def error(line: int, check: str, text: str, source: str = "") -> Finding:
    return Finding(line, ERROR, check, text, source)


def warning(line: int, check: str, text: str, source: str = "") -> Finding:
    return Finding(line, WARNING, check, text, source)
