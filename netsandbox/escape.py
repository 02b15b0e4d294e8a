"""Text that others chose, as people may see it: it can neither move the cursor nor change colours nor hide itself by
writing direction (attack 172). Two forms, both pure; `policy.names.printable` puts quotes around it for an error.

`safe` is printable ASCII, for hosts and whatever else a command or the network says. `one_line` keeps the letters of
every language, for paths and for words that people wrote.
"""

from __future__ import annotations


def safe(value: object) -> str:
    """*value* as printable ASCII, everything else escaped."""
    text = str(value)
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if " " <= char <= "~" else _escape(char) for char in text)


def one_line(text: str, limit: int | None = None) -> str:
    """*text* on one line, everything escaped that is no printable character, and cut after *limit* of them."""
    shown = text if limit is None or len(text) <= limit else text[: limit + 1]
    tame = shown if shown.isprintable() else "".join(char if char.isprintable() else _escape(char) for char in shown)
    return tame if shown is text else f"{tame[:limit]}…"


def _escape(char: str) -> str:
    return ascii(char)[1:-1]
