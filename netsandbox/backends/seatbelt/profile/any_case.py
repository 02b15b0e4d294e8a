"""A name in whatever case, as an expression: most disks of Macs take `.VSCODE` for `.vscode`. Pure.

What exists is met under its name on the disk; a name that does not exist yet is met as the command writes it, so a
deny for one spelling would leave the others open (attack 141).
"""

from __future__ import annotations

from netsandbox.backends.seatbelt.profile.sbpl_string import MAX_BYTES, quoted
from netsandbox.errors import UsageError

_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/ _-,:;=@%~!&'<>#"
WITHIN, ITSELF = "($|/)", "$"


def in_any_case(folder: str, name: str, end: str) -> str:
    """*folder* as it is, then *name* in any case. What means something in an expression stands for any character:
    a deny may match more than was meant, never less."""
    front = "".join(char if char in _PLAIN or not char.isascii() else "." for char in folder)
    return f"^{front}/{''.join(_either(char) for char in name)}{end}"


def _either(char: str) -> str:
    return f"[{char.lower()}{char.upper()}]" if char.isalpha() else f"[{char}]" if char == "." else char


def filters(folder: str, names: tuple[str, ...], end: str) -> list[str]:
    """Each as a filter of a rule; an error for a folder so long that no expression takes it (INV-1)."""
    found = [in_any_case(folder, name, end) for name in sorted(names)]
    if any(len(each.encode("utf-8")) > MAX_BYTES for each in found):
        raise UsageError(
            f"the working folder's path is too long to protect what is in it: {folder!a}; use another folder"
        )
    return [f"  (regex #{quoted(each, 'expression')})" for each in found]
