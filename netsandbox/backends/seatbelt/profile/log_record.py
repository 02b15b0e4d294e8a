"""Parses one line of `log stream --style ndjson`. Pure.

It is strict: the line is one JSON object in UTF-8 and nothing else, no name is repeated, and its size is bounded.
`json` is loaded before the command runs, as every module on a Mac.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

MAX_BYTES = 65536


def members(line: bytes) -> dict[str, object] | None:
    """The object in *line*; None if it is not exactly one."""
    if len(line) > MAX_BYTES:
        return None
    try:
        found = json.loads(line.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError):  # ValueError also for bytes that are not UTF-8
        return None
    return found if isinstance(found, dict) else None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is repeated")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
