"""TOML of strangers, read with bounds (pure)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_DOTS = 1000  # tomllib takes quadratic time over the parts of one key


class BadToml(ValueError):
    """Not a document that is read. The message is one line."""


def document(text: str) -> dict[str, object]:
    """The values of *text*."""
    import tomllib

    if any(line.count(".") > _MAX_DOTS for line in text.split("\n")):
        raise BadToml("has a line that is too long for a key")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):  # ValueError also for numbers without end
        raise BadToml("is no valid TOML") from None


def table(value: object, *keys: str) -> dict[str, object]:
    """The table at *keys*; empty where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def word(value: object, *keys: str) -> str:
    """The string at *keys*; empty where there is none."""
    *above, last = keys
    found = table(value, *above).get(last)
    return found if isinstance(found, str) else ""


def tables(value: object) -> Iterator[dict[str, object]]:
    """Each table of an array of tables."""
    return (each for each in (value if isinstance(value, list) else ()) if isinstance(each, dict))


def words(value: object) -> Iterator[str]:
    """Each string of an array, or the one that stands in its place."""
    return (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str))
