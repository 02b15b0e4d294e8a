"""IP addresses as numbers, and the one spelling of each.

`ipaddress` costs more to import than the whole path to exec may take. The C library's functions are no substitute: what
inet_pton(3) accepts differs between systems, and inet_ntop(3) writes `::1.2.3.4` for an IPv4-compatible address, while
the policy must read and write an address the same everywhere. Rules kept:

1. `parse` is strict: no octal, no hexadecimal, no short IPv4, no zone id, no brackets.
2. `Address.text` is the canonical form (dotted quad, RFC 5952), so one address has one spelling (INV-2).
"""

from __future__ import annotations

from netsandbox.frozen import frozen

BITS = {4: 32, 6: 128}
_MAPPED_PREFIX = 0xFFFF  # ::ffff:0:0/96
_HEX = "0123456789abcdefABCDEF"


@frozen
class Address:
    """One IPv4 or IPv6 address."""

    version: int
    value: int

    @property
    def text(self) -> str:
        """The canonical spelling, without brackets."""
        return _format4(self.value) if self.version == 4 else _format6(self.value)


def parse(text: str) -> Address | None:
    """The address that *text* spells, or None."""
    value = parse4(text)
    if value is not None:
        return Address(4, value)
    value = parse6(text)
    return None if value is None else Address(6, value)


def unmapped(address: Address) -> Address:
    """The IPv4 address behind ::ffff:a.b.c.d; the kernel sends both to the same place, so they are one destination."""
    if address.version == 6 and address.value >> 32 == _MAPPED_PREFIX:
        return Address(4, address.value & 0xFFFFFFFF)
    return address


def embedded4(value: int) -> tuple[int, ...]:
    """The IPv4 addresses that an IPv6 address carries."""
    low = value & 0xFFFFFFFF
    # compatible ::/96, mapped ::ffff:0:0/96, translated ::ffff:0:0:0/96, NAT64 64:ff9b::/96
    if value >> 32 in (0, 0xFFFF, 0xFFFF0000, 0x64FF9B << 64):
        return (low,)
    if value >> 112 == 0x2002:  # 6to4
        return (value >> 80 & 0xFFFFFFFF,)
    if value >> 96 == 0x20010000:  # Teredo: the server, and the client with its bits turned
        return (value >> 64 & 0xFFFFFFFF, low ^ 0xFFFFFFFF)
    if value >> 32 & 0xFDFFFFFF == 0x5EFE:  # ISATAP interface identifier
        return (low,)
    return ()


def parse4(text: str) -> int | None:
    """A dotted quad in decimal without leading zeros, or None."""
    parts = text.split(".", 4)
    if len(parts) != 4 or not text.isascii():
        return None
    value = 0
    for part in parts:
        if not part.isdigit() or len(part) > 3 or (part[0] == "0" and part != "0") or int(part) > 255:
            return None
        value = value << 8 | int(part)
    return value


def parse6(text: str) -> int | None:
    """The 128 bits that an RFC 4291 spelling stands for, or None."""
    if len(text) > 45 or ":" not in text:
        return None
    head, gap, tail = text.partition("::")
    if not gap:
        groups = _groups(text, ends=True)
        return _join(groups) if groups is not None and len(groups) == 8 else None
    left = _groups(head, ends=False) if head else []
    right = _groups(tail, ends=True) if tail else []
    if left is None or right is None or len(left) + len(right) > 7:
        return None
    return _join(left + [0] * (8 - len(left) - len(right)) + right)


def _groups(text: str, *, ends: bool) -> list[int] | None:
    """The 16-bit groups of *text*; a dotted quad may stand for the last two where the address *ends* here."""
    parts = text.split(":")
    groups: list[int] = []
    if ends and "." in parts[-1]:
        quad = parse4(parts.pop())
        if quad is None:
            return None
        groups = [quad >> 16, quad & 0xFFFF]
    numbers = []
    for part in parts:
        if not 1 <= len(part) <= 4 or part.strip(_HEX):
            return None
        numbers.append(int(part, 16))
    return numbers + groups


def _join(groups: list[int]) -> int:
    value = 0
    for group in groups:
        value = value << 16 | group
    return value


def _format4(value: int) -> str:
    return f"{value >> 24}.{value >> 16 & 255}.{value >> 8 & 255}.{value & 255}"


def _format6(value: int) -> str:
    if value >> 32 == _MAPPED_PREFIX:
        return "::ffff:" + _format4(value & 0xFFFFFFFF)
    groups = [f"{value >> shift & 0xFFFF:x}" for shift in range(112, -1, -16)]
    start, length = _longest_zero_run(groups)
    if length < 2:
        return ":".join(groups)
    return ":".join(groups[:start]) + "::" + ":".join(groups[start + length :])


def _longest_zero_run(groups: list[str]) -> tuple[int, int]:
    best = (0, 0)
    start = 0
    for index, group in enumerate(groups):
        if group != "0":
            start = index + 1
        elif index + 1 - start > best[1]:
            best = (start, index + 1 - start)
    return best
