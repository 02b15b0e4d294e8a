"""Bounded ASCII JSON, for audit records and for the replies of the control socket.

`json` is a file of the interpreter and cannot be imported once the command runs (`runtime.import_sealing`). It also has
no bounds, and the values written here come from the command.
"""

from __future__ import annotations

from _json import encode_basestring_ascii as quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CUT = '"\\u2026"'  # stands for what lies deeper than `max_depth`
_MAX_INT = 1 << 63  # past 64 bits readers lose digits


class JsonWriter:
    """Cuts texts after *max_text* characters, lists and tables after *max_items* members, nesting after *max_depth*."""

    MARKS_CUTS = False  # whether a list or table that was cut ends with the number of members left out

    def __init__(self, max_text: int, max_items: int, max_depth: int = -1) -> None:
        self.max_text = max_text
        self.max_items = max_items
        self.max_depth = max_depth  # -1: as deep as the value is

    def write(self, value: object) -> str:
        return "".join(self.pieces(value))

    def pieces(self, value: object) -> Iterator[str]:
        """The text of *value* piece by piece, so that a caller can stop when it has become too long."""
        return self._pieces(value, self.max_depth)

    def _pieces(self, value: object, depth: int) -> Iterator[str]:
        if isinstance(value, dict):
            yield from self._table(value, depth)
        elif isinstance(value, (list, tuple, set, frozenset)):
            yield from self._members(list(value), depth)
        else:
            yield self.scalar(value)

    def scalar(self, value: object) -> str:
        if value is None:
            return "null"
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return int.__repr__(value) if -_MAX_INT < value < _MAX_INT else self.big_number(value)
        if isinstance(value, float):
            return float.__repr__(value) if value - value == 0 else "null"
        return self.other(value)

    def text(self, value: str) -> str:
        return quote(value[: self.max_text])

    def big_number(self, _value: int) -> str:
        return "null"

    def other(self, value: object) -> str:
        raise TypeError(f"{type(value).__name__} cannot be written as JSON")

    def _table(self, table: dict[object, object], depth: int) -> Iterator[str]:
        if depth == 0:
            yield CUT
            return
        items = list(table.items())
        before = "{"
        for key, item in items[: self.max_items]:
            yield f"{before}{self.text(str(key))}:"
            yield from self._pieces(item, depth - 1)
            before = ","
        left_out = len(items) - self.max_items
        if self.MARKS_CUTS and left_out > 0:
            yield f"{before}{CUT}:{left_out}"
        yield "}" if items else "{}"

    def _members(self, members: list[object], depth: int) -> Iterator[str]:
        if depth == 0:
            yield CUT
            return
        before = "["
        for member in members[: self.max_items]:
            yield before
            yield from self._pieces(member, depth - 1)
            before = ","
        left_out = len(members) - self.max_items
        if self.MARKS_CUTS and left_out > 0:
            yield f'{before}"\\u2026[+{left_out}]"'
        yield "]" if members else "[]"
