"""A key of a configuration file (reader, type, which values widen the policy), and one entry of a file."""

from __future__ import annotations

from netsandbox.errors import UsageError
from netsandbox.frozen import frozen
from netsandbox.policy.file_rules import PROJECT
from netsandbox.policy.policy import LOCALHOST, OFFLINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

TEXT: dict[str, object] = {"type": "string", "minLength": 1}
TEXTS: dict[str, object] = {"type": "array", "items": TEXT}
TRUTH: dict[str, object] = {"type": "boolean"}
PORT: dict[str, object] = {"type": "integer", "minimum": 1, "maximum": 65535}
PORTS: dict[str, object] = {"type": "array", "items": PORT}
PORTS_OR_TEXTS: dict[str, object] = {"type": "array", "items": {"anyOf": [PORT, TEXT]}}


def always(value: object) -> bool:
    """Every value could widen the policy."""
    return True


def never(value: object) -> bool:
    """No value widens the policy."""
    return False


@frozen
class Key:
    """One key of a file.

    `field`: the field of `FileSettings`; '' if the value is used earlier. `widens(value)`: whether a project's file
    needs the user's trust to set it; an empty list needs none. `adds`: the lists of several files are joined; otherwise
    the highest file's value is used. `stacks`: each file's value is kept, with its rank. `options`: the options of
    `run` that set the same. `default_text`: the default in words, if the field's default does not show it.
    """

    field: str
    read: Callable[[Entry], object]
    about: str
    schema: dict[str, object]
    widens: Callable[[object], bool]
    adds: bool = False
    stacks: bool = False
    alias_of: tuple[str, str] | None = None  # the table and key that this is another spelling of
    options: tuple[str, ...] = ()
    default_text: str = ""


HARMLESS_PROFILES = ("base", OFFLINE, LOCALHOST)


def names_opening(profiles: object) -> bool:
    """Whether any of the profiles could widen the policy."""
    return not isinstance(profiles, tuple) or any(name not in HARMLESS_PROFILES for name, _ in profiles)


def leaves_the_user_out(inherits: object) -> bool:
    """Without the user's file its deny rules would not apply."""
    return not inherits


def opens_files(mode: object) -> bool:
    """Whether the mode shows more files than the default one."""
    return mode != PROJECT


def passes_more(clean: object) -> bool:
    """Whether variables pass that nobody named."""
    return not clean


def opens_the_network(mode: object) -> bool:
    """Whether the mode lets anything out."""
    return mode not in (OFFLINE, LOCALHOST)


def weakens_the_backend(name: object) -> bool:
    """Whether a weaker backend than the strongest could be used."""
    return name != "namespaces"


class Entry:
    """One key in a file, with its value and lines, as readers get it; a wrong value is a `UsageError` with its line."""

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

    def items(self, kind: type | tuple[type, ...], wanted: str) -> list[tuple[Any, str]]:
        """Each item of a list with its origin."""
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(self.value, list):
            raise self.wrong(wanted)
        for index, item in enumerate(self.value):
            if type(item) not in kinds or too_long(item):
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
    """Whether the number has more than TOML's 64 bits: Python refuses to print such numbers."""
    return isinstance(value, int) and not -(1 << 63) <= value < 1 << 63
