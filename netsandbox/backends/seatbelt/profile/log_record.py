"""Parses one line of `log stream --style ndjson`. Pure, and without `json`, which a sealed supervisor lacks.

It is strict: the line is one JSON object in UTF-8 and nothing else, no key is repeated, nesting and size are bounded.
Strings, integers and null are kept; other values are checked for syntax and dropped.
"""

from __future__ import annotations

MAX_BYTES = 65536
MAX_DEPTH = 16
_SPACE = " \t\r"
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"true": True, "false": False, "null": None}
_DIGITS = "0123456789"
_LEFT_OUT = object()
Value = object


class _Broken(Exception):
    """The line is not such an object."""


def members(line: bytes) -> dict[str, Value] | None:
    """The top-level members of *line*; None if it is not exactly one object."""
    if len(line) > MAX_BYTES:
        return None
    try:
        text = line.decode("utf-8")
        at = _skip(text, 0)
        if text[at : at + 1] != "{":
            return None
        found, at = _object(text, at, 0)
        if _skip(text, at) != len(text):
            return None
    except (UnicodeDecodeError, _Broken):
        return None
    return {key: value for key, value in found.items() if value is not _LEFT_OUT}


def _value(text: str, at: int, depth: int) -> tuple[Value, int]:
    first = text[at : at + 1]
    if first == '"':
        return _string(text, at + 1)
    if first == "{":
        return _LEFT_OUT, _object(text, at, depth)[1]
    if first == "[":
        return _LEFT_OUT, _array(text, at, depth)
    if first == "-" or (first and first in _DIGITS):
        return _number(text, at)
    for word, value in _WORDS.items():
        if text.startswith(word, at):
            return value, at + len(word)
    raise _Broken


def _object(text: str, at: int, depth: int) -> tuple[dict[str, Value], int]:
    found: dict[str, Value] = {}
    if depth == MAX_DEPTH:
        raise _Broken
    at = _skip(text, at + 1)
    if text[at : at + 1] == "}":
        return found, at + 1
    while True:
        if text[at : at + 1] != '"':
            raise _Broken
        key, at = _string(text, at + 1)
        at = _skip(text, at)
        if text[at : at + 1] != ":" or key in found:
            raise _Broken
        found[key], at = _value(text, _skip(text, at + 1), depth + 1)
        at = _skip(text, at)
        if text[at : at + 1] == "}":
            return found, at + 1
        at = _after_comma(text, at)


def _array(text: str, at: int, depth: int) -> int:
    if depth == MAX_DEPTH:
        raise _Broken
    at = _skip(text, at + 1)
    if text[at : at + 1] == "]":
        return at + 1
    while True:
        at = _skip(text, _value(text, at, depth + 1)[1])
        if text[at : at + 1] == "]":
            return at + 1
        at = _after_comma(text, at)


def _after_comma(text: str, at: int) -> int:
    if text[at : at + 1] != ",":
        raise _Broken
    return _skip(text, at + 1)


def _string(text: str, at: int) -> tuple[str, int]:
    """The string that begins at *at*, after its quote; a lone surrogate stays one, as in `json`."""
    parts: list[str] = []
    while True:
        end = at
        while end < len(text) and text[end] not in '"\\' and text[end] >= " ":
            end += 1
        parts.append(text[at:end])
        mark = text[end : end + 1]
        if mark == '"':
            return _paired("".join(parts)), end + 1
        if mark != "\\":
            raise _Broken
        kind = text[end + 1 : end + 2]
        if kind == "u":
            parts.append(chr(_hex(text[end + 2 : end + 6])))
            at = end + 6
        elif kind in _ESCAPES:
            parts.append(_ESCAPES[kind])
            at = end + 2
        else:
            raise _Broken


def _hex(digits: str) -> int:
    if len(digits) != 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
        raise _Broken
    return int(digits, 16)


def _paired(text: str) -> str:
    if not any("\ud800" <= char <= "\udbff" for char in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _number(text: str, at: int) -> tuple[Value, int]:
    end = at + 1 if text[at] == "-" else at
    whole, end = end, _digits(text, end)
    if text[whole] == "0" and end > whole + 1:
        raise _Broken
    is_whole = True
    if text[end : end + 1] == ".":
        is_whole, end = False, _digits(text, end + 1)
    if text[end : end + 1] in ("e", "E"):
        is_whole, end = False, _digits(text, end + 2 if text[end + 1 : end + 2] in ("+", "-") else end + 1)
    if not is_whole or end - at > 20:  # no number of a log is longer than 64 bits
        return _LEFT_OUT, end
    return int(text[at:end]), end


def _digits(text: str, at: int) -> int:
    end = at
    while end < len(text) and text[end] in _DIGITS:
        end += 1
    if end == at:
        raise _Broken
    return end


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
