"""A name in any case, as a regular expression: most disks of macOS treat `.VSCODE` as `.vscode`. Pure.

An existing file matches under its name on the disk. A file that does not exist yet matches as the command writes its
name, so a deny for one spelling would leave the others open (attack 141).
"""

from __future__ import annotations

from netsandbox.backends.seatbelt.profile.sbpl_string import MAX_BYTES, quoted
from netsandbox.errors import UsageError

_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/ _-,:;=@%~!&'<>#"
WITHIN, ITSELF = "($|/)", "$"


def in_any_case(folder: str, name: str, end: str) -> str:
    """*folder* unchanged, then *name* in any case. A character with a meaning in expressions becomes "any character": a
    deny may match more than was meant, never less.
    """
    front = "".join(char if char in _PLAIN or not char.isascii() else "." for char in folder)
    return f"^{front}/{''.join(_either(char) for char in name)}{end}"


def _either(char: str) -> str:
    return f"[{char.lower()}{char.upper()}]" if char.isalpha() else f"[{char}]" if char == "." else char


def filters(folder: str, names: tuple[str, ...], end: str) -> list[str]:
    """Each name as a filter of a rule; an error for a folder that is too long for an expression (INV-1)."""
    found = [in_any_case(folder, name, end) for name in sorted(names)]
    if any(len(each.encode("utf-8")) > MAX_BYTES for each in found):
        raise UsageError(
            f"the working folder's path is too long to protect what is in it: {folder!a}; use another folder"
        )
    return [f"  (regex #{quoted(each, 'expression')})" for each in found]
