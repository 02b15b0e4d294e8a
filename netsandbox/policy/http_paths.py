"""Paths of requests: the one spelling that rules are compared with, and the globs of rules. Pure.

Rules kept:

1. A path is compared in one spelling (attack 42): percent-encoded characters that no server distinguishes from the
   plain ones are decoded, all others keep their encoding in upper case. The request itself goes on as it was sent.
2. A path that two servers could read differently has no such spelling. It is `None`, and the caller must not let it
   depend on a path then: encoded slashes, dot segments, `//`, `;`, `\\`, double encoding, control bytes, no UTF-8.
3. Work is linear in the path for one segment's pattern, and bounded by segments times patterns for a glob.
"""

from __future__ import annotations

from netsandbox.text import has_pieces

MAX_PATH = 16 * 1024  # bytes; a longer one is not compared
ANY = "**"  # stands for any number of segments
_HEX = frozenset("0123456789abcdefABCDEF")
# Printable ASCII that stays itself when it is decoded; the characters left out separate parts of a URL.
_DECODED = frozenset(map(chr, range(0x21, 0x7F))) - frozenset("/\\;%?#")
_PLAIN = _DECODED | {"/"}


def canonical_path(target: str) -> str | None:
    """The path of the request target *target*, without query; None if it could be read in two ways."""
    path = target.partition("?")[0]
    if not path.startswith("/") or len(path) > MAX_PATH:
        return None
    decoded = _decode(path)
    if decoded is None or "//" in decoded or _has_dots(decoded):
        return None
    return decoded


def _has_dots(path: str) -> bool:
    return "/." in path and any(segment in (".", "..") for segment in path.split("/"))


def _decode(path: str) -> str | None:
    if "%" not in path:
        return path if _PLAIN.issuperset(path) else None
    first, *rest = path.split("%")
    if not _PLAIN.issuperset(first):
        return None
    parts, raw = [first], bytearray()
    for part in rest:
        code, tail = part[:2], part[2:]
        if len(code) != 2 or not _HEX.issuperset(code) or not _PLAIN.issuperset(tail):
            return None
        value = int(code, 16)
        if value < 0x80 and raw:
            return None  # a letter of several bytes is not complete
        if value >= 0x80:
            raw.append(value)
            parts.append(f"%{code.upper()}")
            if tail or _is_whole(raw):
                if not _is_whole(raw):
                    return None
                raw.clear()
        elif value == 0x20:
            parts.append("%20")
        elif chr(value) in _DECODED:
            parts.append(chr(value))
        else:
            return None
        parts.append(tail)
    return None if raw else "".join(parts)


def _is_whole(raw: bytearray) -> bool:
    """Whether the bytes are one letter in UTF-8, which an overlong form is not."""
    try:
        return len(raw.decode("utf-8")) == 1
    except UnicodeDecodeError:
        return False


class PathGlob:
    """A pattern of paths: `*` is any text within a segment, `**` any number of segments."""

    __slots__ = ("segments",)

    def __init__(self, pattern: str) -> None:
        self.segments = tuple(pattern.split("/")[1:])

    @property
    def is_every_path(self) -> bool:
        return self.segments == (ANY,)

    def matches(self, path: str) -> bool:
        """Whether the canonical *path* matches."""
        return _match(self.segments, path.split("/")[1:])


def _match(patterns: tuple[str, ...], segments: list[str]) -> bool:
    """Compare segment by segment. After a mismatch the latest `**` takes one segment more; earlier ones need not."""
    at = where = 0
    retry, taken = -1, 0
    while where < len(segments):
        if at < len(patterns) and patterns[at] == ANY:
            at += 1
            retry, taken = at, where
        elif at < len(patterns) and _match_segment(patterns[at], segments[where]):
            at += 1
            where += 1
        elif retry >= 0:
            taken += 1
            at, where = retry, taken
        else:
            return False
    return all(pattern == ANY for pattern in patterns[at:])


def _match_segment(pattern: str, segment: str) -> bool:
    return has_pieces(pattern.split("*"), segment) if "*" in pattern else pattern == segment
