"""One key of a configuration file, its value, and the lines they stand on."""

from __future__ import annotations

from netsandbox.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Entry:
    """What a reader gets: it answers with the checked value, or raises a `UsageError` that names file and line."""

    def __init__(
        self, path: str, key: tuple[str, ...], value: object, lines: Mapping[tuple[str | int, ...], int]
    ) -> None:
        self.path = path
        self.key = key
        self.value = value
        self._lines = lines

    def origin(self, *below: str | int) -> str:
        """`FILE:LINE` of the key, or of something in its value."""
        return f"{self.path}:{self._lines.get((*self.key, *below), self._lines.get(self.key, 1))}"

    def below(self, name: str) -> Entry:
        """One key of the table that the value is."""
        assert isinstance(self.value, dict)
        return Entry(self.path, (*self.key, name), self.value[name], self._lines)

    def wrong(self, wanted: str, *below: str | int) -> UsageError:
        return UsageError(f"{self.origin(*below)}: {self.key[-1]} has a value of the wrong type; write {wanted}")

    def items(self, kind: type, wanted: str) -> list[tuple[Any, str]]:
        """Each item of a list with its origin."""
        if not isinstance(self.value, list):
            raise self.wrong(wanted)
        for index, item in enumerate(self.value):
            if type(item) is not kind or too_long(item):
                raise self.wrong(wanted, index)
        return [(item, self.origin(index)) for index, item in enumerate(self.value)]

    def pairs(self, wanted: str) -> list[tuple[str, str, str]]:
        """Each name of a table with its text and its origin."""
        if not isinstance(self.value, dict):
            raise self.wrong(wanted)
        for name, text in self.value.items():
            if not isinstance(text, str) or "\0" in text:
                raise self.wrong(wanted, name)
        return [(name, text, self.origin(name)) for name, text in self.value.items()]

    def text(self, wanted: str) -> str:
        if not isinstance(self.value, str) or not self.value or "\0" in self.value:
            raise self.wrong(wanted)
        return self.value

    def truth(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value


def too_long(value: object) -> bool:
    """Longer than TOML's 64 bits: Python refuses to write such numbers down."""
    return isinstance(value, int) and not -(1 << 63) <= value < 1 << 63
