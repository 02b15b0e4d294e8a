"""A JSON file (`.claude-sandbox.json`, `.agent-os/sandbox-config.json`) becomes the tables of a TOML file (pure).

It is as strict as the TOML reader: invalid JSON, a repeated name, an unknown name and a value of the wrong type are
errors with file and line. The only extension of JSON is `//` comments, to the end of their line.
"""

from __future__ import annotations

from collections.abc import Mapping
from json import JSONDecodeError, JSONDecoder
from typing import Any

from netsandbox.config.key import too_long
from netsandbox.errors import UsageError
from netsandbox.text import did_you_mean, quoted

Path = tuple[str | int, ...]

VERSION = "version"
KNOWN_VERSIONS = ("1", "1.0")
# name: (table, key, type of each value, an example)
NAMES: dict[str, tuple[str, str, type, str]] = {
    "additional_read_paths": ("filesystem", "allow_read", str, '["~/.agent-os"]'),
    "additional_write_paths": ("filesystem", "allow_write", str, '["./build"]'),
    "additional_exec_paths": ("filesystem", "allow_execute", str, '["./scripts"]'),
    "network_ports": ("localhost", "connect_host", int, "[5432]"),
    "environment": ("shell", "set_env", dict, '{"NODE_ENV": "test"}'),
}
MAX_DEPTH = 64
_SCALARS = JSONDecoder()
_SPACE = " \t\r\n"


def parsed_json(path: str, text: str) -> tuple[dict[str, Any], Mapping[Path, int]]:
    """The tables in *text*, and the line of each value."""
    walk = _Walk(path, text)
    document = walk.document()
    if not isinstance(document, dict):
        raise UsageError(f'{path}:1: not an object; write {{"additional_write_paths": ["./build"]}}')
    tables: dict[str, Any] = {}
    lines: dict[Path, int] = {}
    for name, value in document.items():
        line = walk.lines[name,]
        if name == VERSION:
            _check_version(path, line, value)
            continue
        if name not in NAMES:
            raise UsageError(f"{path}:{line}: {_unknown(name)}")
        table, key, kind, wanted = NAMES[name]
        _check(f"{path}:{line}: {name}", value, kind, wanted)
        tables.setdefault(table, {})[key] = value
        lines[table,] = lines[table, key] = line
        lines |= {(table, key, *at[1:]): where for at, where in walk.lines.items() if at[:1] == (name,)}
    return tables, lines


def _check_version(path: str, line: int, value: object) -> None:
    if value not in KNOWN_VERSIONS:
        raise UsageError(f'{path}:{line}: version {quoted(str(value))} is not known; write "version": "1.0"')


def _check(place: str, value: object, kind: type, wanted: str) -> None:
    if kind is dict:
        fits = isinstance(value, dict) and all(type(item) is str for item in value.values())
    else:
        fits = isinstance(value, list) and all(type(item) is kind for item in value)
    if not fits:
        raise UsageError(f"{place} has a value of the wrong type; write {wanted}")


def _unknown(name: str) -> str:
    known = (VERSION, *NAMES)
    advice = did_you_mean(name, known, f"use one of {', '.join(known)}", 0.5)
    return f"unknown name {quoted(name)}; {advice}"


class _Walk:
    """Reads values and their lines."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.at = 0
        self._counted = (0, 1)  # up to where lines were counted, and how many
        self.lines: dict[Path, int] = {}

    def document(self) -> object:
        value = self.value((), 0)
        if self.skip():
            raise self.wrong("more than one value")
        return value

    def value(self, place: Path, depth: int) -> object:
        char = self.skip()
        self.lines[place] = self.line()
        if depth > MAX_DEPTH:
            raise self.wrong("too deep")
        if char == "{":
            return self.table(place, depth)
        if char == "[":
            return self.list(place, depth)
        return self.scalar()

    def table(self, place: Path, depth: int) -> dict[str, object]:
        found: dict[str, object] = {}
        self.at += 1
        if self.skip() == "}":
            self.at += 1
            return found
        while True:
            if self.skip() != '"':
                raise self.wrong("a name in quotation marks is missing")
            line = self.line()
            name = str(self.scalar())
            if name in found:
                raise self.wrong(f"{quoted(name)} is set twice")
            self.expect(":")
            found[name] = self.value((*place, name), depth + 1)
            self.lines[*place, name] = line
            if self.ends("}"):
                return found

    def list(self, place: Path, depth: int) -> list[object]:
        found: list[object] = []
        self.at += 1
        if self.skip() == "]":
            self.at += 1
            return found
        while True:
            found.append(self.value((*place, len(found)), depth + 1))
            if self.ends("]"):
                return found

    def ends(self, closer: str) -> bool:
        """Skip a comma, or *closer*, which ends the value."""
        char = self.skip()
        if char not in (",", closer):
            raise self.wrong(f"a comma or {closer} is missing")
        self.at += 1
        return char == closer

    def expect(self, char: str) -> None:
        if self.skip() != char:
            raise self.wrong(f"{char} is missing")
        self.at += 1

    def scalar(self) -> object:
        """A string, a whole number of 64 bits, true, false or null."""
        try:
            value, end = _SCALARS.raw_decode(self.text, self.at)
        except JSONDecodeError as error:
            raise self.wrong(error.msg) from None
        except ValueError:  # Python refuses a number of thousands of digits
            raise self.wrong("a number without end") from None
        if isinstance(value, float) or too_long(value):
            raise self.wrong("not a value that is understood here")
        if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
            raise self.wrong("half of a character")
        self.at = end
        return value

    def skip(self) -> str:
        """Skip blanks and comments; the next character, '' at the end."""
        while self.at < len(self.text):
            if self.text.startswith("//", self.at):
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif self.text[self.at] not in _SPACE:
                return self.text[self.at]
            else:
                self.at += 1
        return ""

    def line(self) -> int:
        at, lines = self._counted
        self._counted = (self.at, lines + self.text.count("\n", at, self.at))
        return self._counted[1]

    def wrong(self, why: str) -> UsageError:
        return UsageError(f"{self.path}:{self.line()}: invalid JSON: {why}; correct the file")
