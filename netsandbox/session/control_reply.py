"""What the session says of itself, as one line of ASCII JSON. Pure.

`json` is a file of the interpreter's and cannot be loaded once the command runs (`runtime.import_sealing`). The line is
bounded whatever the values are: when it gets too long, texts and lists are cut shorter until it fits.
"""

from __future__ import annotations

from _json import encode_basestring_ascii as quote

VERSION = 1  # of what is said: readers take no other
MAX_REPLY = 1 << 20
BOUNDS = (4096, 256, 64)  # characters of a text and members of a list, until the line fits
TOO_LONG = b'{"error":"too long"}\n'
_BIG = 1 << 63


def encode(value: object) -> bytes:
    for bound in BOUNDS:
        parts: list[str] = []
        if _add(parts, value, bound, MAX_REPLY - 1) >= 0:
            return "".join(parts).encode("ascii") + b"\n"
    return TOO_LONG


def _add(parts: list[str], value: object, bound: int, room: int) -> int:
    """Add *value*; the room that is left. Less than 0: too long, and nobody went on to find out how much."""
    if isinstance(value, dict):
        return _add_pairs(parts, value, bound, room)
    if isinstance(value, (list, tuple)):
        return _add_members(parts, value, bound, room)
    text = _scalar(value, bound)
    parts.append(text)
    return room - len(text)


def _add_pairs(parts: list[str], value: dict[object, object], bound: int, room: int) -> int:
    before = "{"
    for key in list(value)[:bound]:
        opening = f"{before}{quote(str(key)[:bound])}:"
        parts.append(opening)
        room = _add(parts, value[key], bound, room - len(opening))
        if room < 0:
            return room
        before = ","
    parts.append("}" if value else "{}")
    return room - 2


def _add_members(parts: list[str], value: list[object] | tuple[object, ...], bound: int, room: int) -> int:
    before = "["
    for member in value[:bound]:
        parts.append(before)
        room = _add(parts, member, bound, room - 1)
        if room < 0:
            return room
        before = ","
    parts.append("]" if value else "[]")
    return room - 2


def _scalar(value: object, bound: int) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return quote(value[:bound])
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value) if -_BIG < value < _BIG else "null"
    if isinstance(value, float):
        return float.__repr__(value) if value - value == 0 else "null"
    raise TypeError(f"{type(value).__name__} is nothing a session says of itself")
