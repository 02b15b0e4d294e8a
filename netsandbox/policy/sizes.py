"""Sizes in bytes as users write and read them: `10MB`, `64KiB`, `1.235 MB`. Pure."""

from __future__ import annotations

UNITS = {
    **{"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12},
    **{"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40},
}
MAX_SIZE = 1 << 60
MAX_DIGITS = 19


def parse_size(text: str) -> int | None:
    """The bytes of a number with a unit; None if the text is not that, or fewer than one byte, or a fraction of one."""
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = UNITS.get(text[len(number) :].lower())
    whole, point, part = number.strip().partition(".")
    digits = whole + part
    if unit is None or not whole or bool(point) != bool(part) or len(digits) > MAX_DIGITS:
        return None
    if not (digits.isascii() and digits.isdigit()):
        return None
    size, rest = divmod(int(digits) * unit, 10 ** len(part))
    return size if not rest and 0 < size <= MAX_SIZE else None


def shown_size(count: int) -> str:
    """In the unit that shows it in three or four digits."""
    amount, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{count} B" if unit == "B" else f"{amount:.4g} {unit}"
