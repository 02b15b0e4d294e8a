"""Finds the line of each value in a TOML file.

`tomllib` does not report lines, and every rule must have its origin. This module walks a text that tomllib has
accepted, so it only has to find where values end; it does not check them. Time is linear.
"""

from __future__ import annotations

Path = tuple[str | int, ...]
_SPACE = " \t\r\n,"
_CLOSERS = ",]}#\n"


def locate(text: str) -> dict[Path, int]:
    """The line of every table, key and array item: `("network", "allow_domains", 0)` is the first allowed domain."""
    walk = _Walk(text)
    walk.document()
    return walk.lines


def spans(text: str) -> dict[Path, tuple[int, int]]:
    """Where each value begins and ends, as indexes into *text*."""
    walk = _Walk(text)
    walk.document()
    return walk.spans


class _Walk:
    def __init__(self, text: str) -> None:
        self.text = text + "\n"
        self.at = 0
        self.line = 1
        self.lines: dict[Path, int] = {}
        self.spans: dict[Path, tuple[int, int]] = {}
        self.counts: dict[Path, int] = {}  # the index of the latest item of each list of tables

    def document(self) -> None:
        table: Path = ()
        while self.skip():
            if self.text[self.at] == "[":
                is_item = self.text.startswith("[[", self.at)
                self.advance(self.at + (2 if is_item else 1))
                table = self.key("]")
                self.lines.setdefault(table, self.line)
                if is_item:
                    table = self.item(table)
                self.advance(self.text.index("\n", self.at))
            else:
                self.pair(table)

    def item(self, tables: Path) -> Path:
        """The path of the next table in the list *tables*."""
        self.counts[tables] = self.counts.get(tables, -1) + 1
        path = (*tables, self.counts[tables])
        self.lines[path] = self.line
        return path

    def pair(self, table: Path) -> None:
        path = table + self.key("=")
        for length in range(len(table) + 1, len(path)):
            self.lines.setdefault(path[:length], self.line)
        self.value(path)

    def key(self, end: str) -> Path:
        """The parts of a dotted key; moves past its *end*."""
        parts: list[str | int] = []
        while True:
            self.skip()
            start = self.at
            char = self.text[start]
            if char in "\"'":
                self.advance(self.string_end())
                parts.append(self.text[start + 1 : self.at - 1])
            elif char == end:
                self.advance(start + 1)
                return tuple(parts)
            elif char == ".":
                self.advance(start + 1)
            else:
                while self.text[self.at] not in " \t.]=":
                    self.at += 1
                parts.append(self.text[start : self.at])

    def value(self, path: Path) -> None:
        self.skip()
        self.lines[path] = self.line
        start = self.at
        char = self.text[start]
        if char == "[":
            self.advance(self.at + 1)
            index = 0
            while self.skip() and self.text[self.at] != "]":
                self.value((*path, index))
                index += 1
            self.advance(self.at + 1)
        elif char == "{":
            self.advance(self.at + 1)
            while self.skip() and self.text[self.at] != "}":
                self.pair(path)
            self.advance(self.at + 1)
        elif char in "\"'":
            self.advance(self.string_end())
        else:
            while self.text[self.at] not in _CLOSERS:
                self.at += 1
        self.spans[path] = (start, self.at)

    def skip(self) -> bool:
        """Skip blank space, commas and comments; whether anything is left."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "#":
                self.at = self.text.index("\n", self.at)
            elif char not in _SPACE:
                return True
            else:
                self.line += char == "\n"
                self.at += 1
        return False

    def string_end(self) -> int:
        """The index just past the string that begins here."""
        text, start = self.text, self.at
        quote = text[start]
        fence = quote * 3 if text.startswith(quote * 3, start) else quote
        at = text.index(fence, start + len(fence))
        while quote == '"' and _escaped(text, at):
            at = text.index(fence, at + 1)
        at += len(fence)
        while len(fence) == 3 and text[at] == quote:  # up to two quotes may stand just before the closing fence
            at += 1
        return at

    def advance(self, to: int) -> None:
        self.line += self.text.count("\n", self.at, to)
        self.at = to


def _escaped(text: str, at: int) -> bool:
    """Whether an odd number of backslashes stands before *at*."""
    start = at
    while text[start - 1] == "\\":
        start -= 1
    return (at - start) % 2 == 1
