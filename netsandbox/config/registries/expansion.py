"""`${VARIABLE}` inside settings, as npm and its kin expand it (pure).

In a project's file a variable may only stand for the beginning of a URL. Elsewhere it would let a stranger's file spell
a secret of the user into a host name, where it would be shown, asked for and looked up.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST = 4096


class Unexpanded(ValueError):
    """A variable that is not set or must not be used here. The message names it."""


def expand(text: str, value_of: Callable[[str], str | None], *, project: bool) -> str:
    """*text* with its variables; a name may carry `?`, `-DEFAULT` or `:-DEFAULT`."""
    expanded, rest = "", text
    while True:
        before, start, inside = rest.partition("${")
        name, end, after = inside.partition("}")
        if not start or not end:
            return expanded + rest
        value = _value(name, value_of)
        if project and (expanded or before or not value.startswith(("http://", "https://"))):
            raise Unexpanded(f"a project's file may use {_shown(name)} only as the whole beginning of a URL")
        expanded, rest = expanded + before + value, after
        if len(expanded) > _LONGEST:
            raise Unexpanded(f"the value of {_shown(name)} is too long")


def _value(name: str, value_of: Callable[[str], str | None]) -> str:
    """The variable's value, or what stands for it where it is not set."""
    plain, dash, default = name.partition("-")
    if dash:
        bare = plain.removesuffix(":")
        value = value_of(bare)
        return default if value is None or (value == "" and bare != plain) else value
    value = value_of(name.removesuffix("?"))
    if value is None and not name.endswith("?"):
        raise Unexpanded(f"the variable {_shown(name)} is not set")
    return value or ""


def _shown(name: str) -> str:
    return ascii(name[:60])
