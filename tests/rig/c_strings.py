"""The functions of C for strings and memory, for a library that runs on an emulated processor."""

from __future__ import annotations

from collections.abc import Callable

from tests.rig.mach_o import Answers, MachO


def answers(get: Callable[[], MachO]) -> Answers:
    """By name, as MachO wants them. *get* gives the machine, which is made with these."""
    strings = CStrings(get)
    return {
        "memcpy": ("ppp", strings.copy),
        "__memcpy_chk": ("pppp", strings.copy_checked),
        "memmove": ("ppp", strings.copy),
        "memchr": ("pip", strings.find_in_memory),
        "memcmp": ("ppp", strings.compare_memory),
        "bzero": ("pp", strings.clear),
        "__bzero": ("pp", strings.clear),
        "strlen": ("p", lambda text: len(strings.read(text))),
        "strcmp": ("pp", lambda one, other: _order(strings.read(one), strings.read(other))),
        "strncmp": ("ppp", lambda one, other, most: _order(strings.read(one)[:most], strings.read(other)[:most])),
        "strstr": ("pp", strings.find),
        "strchr": ("pi", strings.find_byte),
        "strrchr": ("pi", strings.find_last_byte),
        "strnlen": ("pp", lambda text, most: min(len(strings.read(text)), most)),
        "strpbrk": ("pp", strings.find_any),
        "strcspn": ("pp", lambda text, among: strings.span(text, among, inside=False)),
        "strspn": ("pp", lambda text, among: strings.span(text, among, inside=True)),
        "strdup": ("p", strings.duplicate),
    }


def _order(one: bytes, other: bytes) -> int:
    return (one > other) - (one < other)


class CStrings:
    """As <string.h> has them."""

    def __init__(self, get: Callable[[], MachO]) -> None:
        self._get = get

    def read(self, place: int) -> bytes:
        return self._get().string(place)

    def copy(self, to: int, of: int, size: int) -> int:
        self._get().write(to, self._get().read(of, size))
        return to

    def copy_checked(self, to: int, of: int, size: int, room: int) -> int:
        assert size <= room, "macOS ends the program here"
        return self.copy(to, of, size)

    def compare_memory(self, one: int, other: int, size: int) -> int:
        return _order(self._get().read(one, size), self._get().read(other, size))

    def clear(self, place: int, size: int) -> int:
        self._get().write(place, bytes(size))
        return 0

    def find(self, text: int, wanted: int) -> int:
        place = self.read(text).find(self.read(wanted))
        return text + place if place >= 0 else 0

    def find_byte(self, text: int, byte: int) -> int:
        place = (self.read(text) + b"\0").find(bytes([byte & 0xFF]))
        return text + place if place >= 0 else 0

    def find_last_byte(self, text: int, byte: int) -> int:
        place = (self.read(text) + b"\0").rfind(bytes([byte & 0xFF]))
        return text + place if place >= 0 else 0

    def find_in_memory(self, start: int, byte: int, size: int) -> int:
        place = self._get().read(start, size).find(bytes([byte & 0xFF]))
        return start + place if place >= 0 else 0

    def find_any(self, text: int, among: int) -> int:
        place = self.span(text, among, inside=False)
        return text + place if place < len(self.read(text)) else 0

    def span(self, text: int, among: int, *, inside: bool) -> int:
        found, wanted = self.read(text), self.read(among)
        return next((place for place, byte in enumerate(found) if (byte in wanted) is not inside), len(found))

    def duplicate(self, text: int) -> int:
        return self._get().put(self.read(text) + b"\0")
