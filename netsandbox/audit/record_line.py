"""One audit record as one line of ASCII JSON. Pure: no files, no clock.

Rules kept here:
1. A record is one line, whatever the values hold: everything outside printable ASCII is escaped (attack 172).
2. Keys come in one fixed order; absent values are left out; `prev` is last, so a torn line never looks whole.
3. Every value is bounded: text to MAX_TEXT characters, lists to MAX_ITEMS, the line to MAX_LINE bytes (attack 177).
4. URLs lose userinfo, query and fragment, hosts lose userinfo (attack 179).
5. Formatting never raises on a value: a record that cannot be written would deny all that follows.
"""

from __future__ import annotations

from _json import encode_basestring_ascii as quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 1
ALLOW = "allow"
DENY = "deny"

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
_BIG = 1 << 63

# Which keys a set of names prints, in order: (name, text before the value, whether the value is a host). There are as
# many entries as kinds of call in our own code; the bound is for callers who invent names.
_SHAPES: dict[tuple[str, ...], tuple[tuple[str, str, bool], ...]] = {}
_MAX_SHAPES = 256

# Short texts as they are printed: verdicts, reasons, hosts and programs come again and again.
_QUOTED: dict[str, str] = {}
_MAX_QUOTED = 1024


def line(stamp: str, seq: int, session: str, event: str, *, fields: Mapping[str, object], prev: str) -> bytes:
    """The record as bytes, without the newline; envelope names in *fields* are ignored."""
    whole = _build(f'{{"v":{VERSION},"ts":"{stamp}","seq":{seq}', session, event, fields, prev)
    if len(whole) <= MAX_LINE:
        return whole
    core = {name: _short(fields[name]) for name in FIELDS if name in fields}
    core["cut"] = True
    return _build(f'{{"v":{VERSION},"ts":"{stamp}","seq":{seq}', session, event, core, prev)


def _short(value: object) -> object:
    if isinstance(value, (str, bytes)):
        return value[:MAX_NAME]
    return value if isinstance(value, int) else None


def _build(opening: str, session: str, event: str, fields: Mapping[str, object], prev: str) -> bytes:
    """The hot path: the common kinds of value are told apart here, the rest in `_json`."""
    known = _QUOTED.get
    parts = [opening, ',"session":', known(session) or _text(session), ',"event":', known(event) or _text(event)]
    add = parts.append
    names = tuple(fields)
    for name, key, is_host in _SHAPES.get(names) or _shape(names):
        value = fields[name]
        if type(value) is str:
            if is_host and ("@" in value or "?" in value):
                value = _without_userinfo(value)
            add(key)
            add(known(value) or _text(value))
        elif value is not None:
            add(key)
            add(_json(value, MAX_DEPTH))
    add(f',"prev":"{prev}"}}')
    return "".join(parts).encode("ascii")


def _shape(names: tuple[str, ...]) -> tuple[tuple[str, str, bool], ...]:
    extras = [name for name in names if name not in FIELDS and name not in ENVELOPE]
    ordered = [name for name in FIELDS if name in names] + extras
    shape = tuple((name, f",{quote(name[:MAX_NAME])}:", name == "host") for name in ordered)
    if len(_SHAPES) >= _MAX_SHAPES:
        _SHAPES.clear()
    _SHAPES[names] = shape
    return shape


def _text(value: str) -> str:
    tame = without_secrets(value) if "://" in value else value
    if len(tame) > MAX_TEXT:
        tame = f"{tame[:MAX_TEXT]}…[+{len(tame) - MAX_TEXT}]"
    quoted = quote(tame)
    if len(value) <= MAX_NAME:
        if len(_QUOTED) >= _MAX_QUOTED:
            _QUOTED.clear()
        _QUOTED[value] = quoted
    return quoted


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


def _json(value: object, depth: int) -> str:
    if type(value) is int and -_BIG < value < _BIG:
        return str(value)
    if value is None:
        return "null"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        # Past 64 bits readers lose digits, and past 4300 digits str() raises.
        return int.__repr__(value) if -_BIG < value < _BIG else quote(hex(value)[:MAX_TEXT])
    if isinstance(value, float):
        return float.__repr__(value) if value - value == 0 else "null"
    if isinstance(value, (bytes, bytearray)):
        return _text(value.decode("utf-8", "surrogateescape"))
    return _nested(value, depth)


def _nested(value: object, depth: int) -> str:
    if depth == 0:
        return '"\\u2026"'
    if isinstance(value, dict):
        items = list(value.items())
        pairs = [f"{_text(str(key))}:{_json(item, depth - 1)}" for key, item in items[:MAX_ITEMS]]
        if len(items) > MAX_ITEMS:
            pairs.append(f'"\\u2026":{len(items) - MAX_ITEMS}')
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, (list, tuple, set, frozenset)):
        members = list(value)
        texts = [_json(item, depth - 1) for item in members[:MAX_ITEMS]]
        if len(members) > MAX_ITEMS:
            texts.append(f'"\\u2026[+{len(members) - MAX_ITEMS}]"')
        return "[" + ",".join(texts) + "]"
    return _text(str(value))
