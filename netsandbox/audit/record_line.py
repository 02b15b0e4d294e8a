"""One audit record as one line of ASCII JSON. Pure: no files, no clock.

Rules kept here:
1. A record is one line, whatever the values hold: everything outside printable ASCII is escaped (attack 172).
2. Keys come in one fixed order; absent values are left out; `prev` is last, so a torn line never looks whole.
3. Every value is bounded: text to MAX_TEXT characters, lists to MAX_ITEMS, the line to MAX_LINE bytes (attack 177).
4. URLs lose userinfo, query and fragment, hosts lose userinfo (attack 179).
5. Formatting never raises on a value: a record that cannot be written would deny all that follows.

`JsonWriter` writes the replies of the control socket too. `json` is a file of the interpreter and cannot be imported
once the command runs (`runtime.imports`). It also has no bounds, and the values come from the command.
"""

from __future__ import annotations

from _json import encode_basestring_ascii as quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

VERSION = 1
GENESIS = "0" * 64  # the predecessor that the first line of a log names
ALLOW = "allow"
DENY = "deny"
FILE_EVENTS = ("file", "exec")
MORE_REFUSED = "more refused paths than are listed"  # with a `count`

MAX_TEXT = 500
MAX_NAME = 100
MAX_ITEMS = 64
MAX_DEPTH = 3
MAX_LINE = 65536

ENVELOPE = ("v", "ts", "seq", "session", "event", "prev")
FIELDS = (
    "verdict",
    "reason",
    "rule",
    "door",
    "host",
    "port",
    "address",
    "pid",
    "exe",
    "bytes_up",
    "bytes_down",
    "ms",
)
MAX_CACHED = 512  # values of one field
_MAX_CACHED_NUMBER = 1 << 22  # every port and process id
MAX_SHAPES = 256  # our own code has fewer; the bound is for callers who invent names


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


class RecordJson(JsonWriter):
    """Values as records show them: URLs without secrets, every cut marked, and a text for whatever is no JSON value."""

    MARKS_CUTS = True

    def text(self, value: str) -> str:
        shown = without_secrets(value) if "://" in value else value
        if len(shown) > self.max_text:
            shown = f"{shown[: self.max_text]}…[+{len(shown) - self.max_text}]"
        return quote(shown)

    def big_number(self, value: int) -> str:
        return quote(hex(value)[: self.max_text])  # past 4300 digits str() raises

    def other(self, value: object) -> str:
        if isinstance(value, (bytes, bytearray)):
            return self.text(value.decode("utf-8", "surrogateescape"))
        return self.text(str(value))


class _Field(dict[object, str]):
    """One field as it is printed, `,"name":value`, for the values it held lately: most of them come again."""

    __slots__ = ("_is_host", "_key")

    def __init__(self, name: str) -> None:
        self._key = f",{quote(name[:MAX_NAME])}:"
        self._is_host = name == "host"

    def __missing__(self, value: object) -> str:
        if type(value) is str and len(value) <= MAX_NAME:
            is_plain = "://" not in value and not (self._is_host and ("@" in value or "?" in value))
            printed = self._key + quote(value) if is_plain else self.print(value)
        elif type(value) is int and 1 < value < _MAX_CACHED_NUMBER:  # not 0 and 1, which False and True are equal to
            printed = f"{self._key}{value}"
        elif value is None:
            printed = ""
        else:
            return self.print(value)
        if len(self) >= MAX_CACHED:
            self.clear()
        self[value] = printed
        return printed

    def print(self, value: object) -> str:
        if value is None:
            return ""
        if type(value) is str:
            value = _without_userinfo(value) if self._is_host and ("@" in value or "?" in value) else value
            return self._key + _JSON.text(value)
        if type(value) is float and 1 < value < _MAX_CACHED_NUMBER and value.is_integer():
            # Printed as the integer, which it is equal to and which may be cached.
            value = int(value)
        return self._key + _JSON.write(value)


class _Shape:
    """What the records of one event with the same names of fields have in common."""

    __slots__ = ("fields", "opening", "order")

    def __init__(self, session: str, event: str, names: list[str]) -> None:
        order = [name for name in FIELDS if name in names]
        order += [name for name in names if name not in FIELDS and name not in ENVELOPE]
        self.opening = f',"session":{_JSON.text(session)},"event":{_JSON.text(event)}'
        self.fields = [_FIELDS.get(name) or _FIELDS.setdefault(name, _Field(name)) for name in order]
        self.order = None if order == names else order  # None: the caller gave them in the order of printing


_JSON = RecordJson(MAX_TEXT, MAX_ITEMS, MAX_DEPTH)
_FIELDS: dict[str, _Field] = {}
_SHAPES: dict[tuple[str, ...], _Shape] = {}
_printed = dict.__getitem__  # of a `_Field`: what is cached costs no call of a Python function


def line(stamp: str, seq: int, session: str, event: str, *, fields: Mapping[str, object], prev: str) -> bytes:
    """The record as bytes, without the newline; envelope names in *fields* are ignored."""
    names = (session, event, *fields)
    shape = _SHAPES.get(names) or _shape(names)
    values = fields.values() if shape.order is None else [fields[name] for name in shape.order]
    try:
        body = "".join(map(_printed, shape.fields, values))
    except TypeError:  # a list or table, which no dictionary takes as a key
        body = "".join(map(_Field.print, shape.fields, values))
    whole = f'{{"v":{VERSION},"ts":"{stamp}","seq":{seq}{shape.opening}{body},"prev":"{prev}"}}'.encode("ascii")
    if len(whole) <= MAX_LINE:
        return whole
    core = {name: _short(fields[name]) for name in FIELDS if name in fields}
    return line(stamp, seq, session, event, fields={**core, "cut": True}, prev=prev)


def _short(value: object) -> object:
    if isinstance(value, (str, bytes)):
        return value[:MAX_NAME]
    return value if isinstance(value, int) else None


def _shape(names: tuple[str, ...]) -> _Shape:
    if len(_SHAPES) >= MAX_SHAPES:
        _SHAPES.clear()
        _FIELDS.clear()
    session, event, *fields = names
    shape = _SHAPES[names] = _Shape(session, event, fields)
    return shape


def _without_userinfo(host: str) -> str:
    host = "***@" + host[host.rindex("@") + 1 :] if "@" in host else host
    return host[: host.index("?")] + "?***" if "?" in host else host


def without_secrets(text: str) -> str:
    """Every URL in *text* without userinfo, query and fragment, where tokens travel."""
    head, *rest = text.split("://")
    return "://".join([head, *map(_bare, rest)])


def _bare(after_scheme: str) -> str:
    end = next((index for index, char in enumerate(after_scheme) if char in " \t\r\n\"'<>"), len(after_scheme))
    url, after = after_scheme[:end], after_scheme[end:]
    for mark in "?#":
        if mark in url:
            url = url[: url.index(mark)] + mark + "***"
    authority, slash, path = url.partition("/")
    if "@" in authority:
        authority = "***@" + authority[authority.rindex("@") + 1 :]
    return authority + slash + path + after
