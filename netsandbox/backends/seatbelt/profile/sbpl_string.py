"""Writes foreign text as string literals of a profile. Pure; the only place that does so (attack 139).

A text becomes exactly one literal or is refused. Only the quote and the backslash are escaped: these two escapes mean
the same to every Scheme reader. Text that needs another escape (control characters, line ends) is refused, since
Seatbelt's reading of it is not documented. Characters that make a printed profile look different from its content are
refused too. Everything else, `)` and `;` included, stands for itself between quotes.
"""

from __future__ import annotations

from netsandbox.errors import UsageError

MAX_BYTES = 1023  # PATH_MAX of macOS without its NUL; older Scheme readers keep a string in a buffer of 1024
_LINE_ENDS = "\u2028\u2029"
_DIRECTIONS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def quoted(text: str, what: str = "path") -> str:
    """*text* as one string literal; *what* names it in the refusal."""
    if not text:
        raise UsageError(f"an empty {what} cannot stand in a Seatbelt profile; name one or leave it out")
    for char in "" if text.isascii() and text.isprintable() else text:
        if _is_refused(char):
            raise UsageError(
                f"the {what} {_shown(text)} has the character {char!a}, which cannot stand in a Seatbelt profile;"
                " rename it"
            )
    if len(text.encode("utf-8")) > MAX_BYTES:
        raise UsageError(f"the {what} {_shown(text)} is longer than {MAX_BYTES} bytes; use a shorter one")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def can_be_quoted(text: str) -> bool:
    try:
        quoted(text)
    except UsageError:
        return False
    return True


def _is_refused(char: str) -> bool:
    code = ord(char)
    surrogate = 0xD800 <= code <= 0xDFFF  # a byte that is not UTF-8; no file name of APFS has one
    return code < 0x20 or 0x7F <= code <= 0x9F or surrogate or char in _LINE_ENDS or char in _DIRECTIONS


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 80 else text[:77] + "...")
