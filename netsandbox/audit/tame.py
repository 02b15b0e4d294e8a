"""Text from outside as people may see it: printable ASCII, so that a host name can neither move the cursor nor change
colours nor hide itself by writing direction (attack 172). Pure."""

from __future__ import annotations


def safe(value: object) -> str:
    """*value* as printable ASCII, everything else escaped."""
    text = str(value)
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if " " <= char <= "~" else _escape(char) for char in text)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
