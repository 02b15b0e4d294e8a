"""The values of a profile's language: what the reader makes and the interpreter passes around. Pure.

Strings, numbers and booleans are Python's own. Every list knows the line on which it began, so that whatever is made
of it later, a rule or a complaint, can say where it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from netsandbox.text import single_line


class ProfileError(Exception):
    """Something that Seatbelt would refuse, or that is not judged here: the profile counts for nothing."""

    def __init__(self, text: str, line: int = 0, source: str = "") -> None:
        super().__init__(f"line {line}: {text}" if line else text)
        self.text = text
        self.line = line
        self.source = source


class ProfileSyntaxError(ProfileError):
    """The text is not a sequence of forms."""


@dataclass(frozen=True)
class Symbol:
    """A name. Where it stands does not make it another name."""

    name: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Form:
    """A list in parentheses, as read: code or, when quoted, data."""

    items: tuple[Datum, ...]
    line: int = field(default=0, compare=False)

    @property
    def head(self) -> str:
        """The name it begins with, or nothing."""
        first = self.items[0] if self.items else None
        return first.name if isinstance(first, Symbol) else ""


@dataclass(frozen=True)
class Closure:
    """A function that the profile defines."""

    name: str
    parameters: tuple[str, ...]
    rest: str | None
    body: tuple[Datum, ...]
    scope: Scope = field(compare=False, repr=False)


@dataclass(frozen=True)
class Procedure:
    """A function of the language itself."""

    name: str
    call: Callable[[list[object]], object] = field(compare=False, repr=False)


class Scope:
    """Names and what they stand for, inside another scope."""

    __slots__ = ("names", "outer")

    def __init__(self, outer: Scope | None = None, names: dict[str, object] | None = None) -> None:
        self.outer = outer
        self.names = {} if names is None else names

    def find(self, name: str) -> Scope | None:
        """The nearest scope that has *name*."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.outer
        return scope


Datum = Symbol | Form | str | int | float | bool


def written(value: object) -> str:
    """A value as a profile would write it, short enough for a message."""
    if isinstance(value, bool):
        return "#t" if value else "#f"
    if isinstance(value, str):
        body = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{printable(body)}"'
    if isinstance(value, Symbol):
        return printable(value.name)
    if isinstance(value, Form):
        return f"({value.head or ''} …)" if len(value.items) > 1 else f"({value.head})"
    if isinstance(value, (Closure, Procedure)):
        return f"the function {printable(value.name)}"
    return printable(str(value))


def printable(text: str, limit: int = 80) -> str:
    """One line of it, whatever is in it, and not too much."""
    return single_line(text, limit)
