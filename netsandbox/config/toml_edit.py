"""Adds items to lists of a TOML text that a person wrote: comments, order and everything else stay (pure).

Rule kept: the parsed result differs from the parsed text only by the added items. If that is not possible, there is
no result.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

from netsandbox.config.source_lines import locate, spans

Item = tuple[str, str]  # a text, and a comment on it or ""


def with_items(text: str, table: str, key: str, items: Sequence[Item]) -> str | None:
    """*text* with *items* at the end of the list *table.key*, which is created if missing; None: it cannot be done
    safely."""
    try:
        before = tomllib.loads(text)
        wanted = _expected(before, table, key, [item for item, _ in items])
        if wanted is None or wanted == before:
            return text if wanted else None
        edited = _edited(text, before, (table, key), items)
        if edited is None or tomllib.loads(edited) != wanted:
            return None
    except (tomllib.TOMLDecodeError, RecursionError, ValueError, IndexError):
        return None
    return edited


def missing(text: str, table: str, key: str, items: Sequence[Item]) -> list[Item]:
    """Those of *items* that the list does not have."""
    found = tomllib.loads(text).get(table, {})
    there = found.get(key, []) if isinstance(found, dict) else []
    return [(item, comment) for item, comment in items if item not in there]


def written(table: str, key: str, items: Sequence[Item], end: str = "\n") -> str:
    """The table with only this list, formatted as by hand."""
    return f"[{table}]{end}{_list(key, items, end)}"


def _list(key: str, items: Sequence[Item], end: str) -> str:
    return f"{key} = [{end}{_lines(items, end)}]{end}" if items else f"{key} = []{end}"


def _lines(items: Sequence[Item], end: str, indent: str = "    ") -> str:
    return "".join(f"{indent}{_quoted(item)},{f'  # {comment}' if comment else ''}{end}" for item, comment in items)


def _quoted(text: str) -> str:
    """The item in printable ASCII, so that a reader sees every character; a command may have chosen them."""
    return f'"{"".join(map(_character, text))}"'


def _character(char: str) -> str:
    if " " <= char <= "~":
        return f"\\{char}" if char in '"\\' else char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def _expected(before: dict[str, Any], table: str, key: str, items: list[str]) -> dict[str, Any] | None:
    there = before.get(table, {})
    if not isinstance(there, dict) or not isinstance(there.get(key, []), list):
        return None
    return {**before, table: {**there, key: [*there.get(key, []), *items]}}


def _edited(text: str, before: dict[str, Any], path: tuple[str, str], items: Sequence[Item]) -> str | None:
    table, key = path
    end = "\r\n" if "\r\n" in text else "\n"
    if key in before.get(table, {}):
        return _in_list(text, path, len(before[table][key]), items, end)
    if table not in before:
        gap = "" if not text else end if text.endswith("\n") else end * 2
        return f"{text}{gap}{written(table, key, items, end)}"
    header = locate(text).get((table,))
    rows = text.splitlines(keepends=True)
    if header is None or rows[header - 1].partition("#")[0].strip() != f"[{table}]":
        return None
    if not rows[header - 1].endswith("\n"):
        rows[header - 1] += end
    return "".join([*rows[:header], _list(key, items, end), *rows[header:]])


def _in_list(text: str, path: tuple[str, str], count: int, items: Sequence[Item], end: str) -> str | None:
    found = spans(text)
    if path not in found:
        return None
    start, stop = found[path]
    close = stop - 1
    last = found[*path, count - 1][1] if count else start + 1
    line = text.rfind("\n", start, close) + 1
    if line > last and not text[line:close].strip():  # the bracket has a line of its own
        comma = "," if count and not _has_comma(text[last:close]) else ""
        indent = _indent(text, found[*path, 0][0]) if count else "    "
        return text[:last] + comma + text[last:line] + _lines(items, end, indent) + text[line:]
    joined = ", ".join(_quoted(item) for item, _ in items)
    return f"{text[:last]}{', ' if count else ''}{joined}{text[last:]}"


def _has_comma(text: str) -> bool:
    """Whether there is a comma outside of comments."""
    return any("," in line.partition("#")[0] for line in text.split("\n"))


def _indent(text: str, at: int) -> str:
    """The text before the first item, if it is blank."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    return before if before and not before.strip() else "    "
