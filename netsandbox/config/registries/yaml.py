"""The part of YAML that settings of package managers are written in (pure; linear, and never an error).

Maps by indentation, lists of plain words, quoted words. Whatever else YAML has (anchors, flow collections, folded text,
tags) is passed over: a value that is not plainly a word is no value.
"""

from __future__ import annotations

from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_DEEPEST = 8
_OTHER = "&*!|>{}[]%@`"  # what begins a value that is no plain word


@frozen
class Leaf:
    """A word, the keys that lead to it, and where it stands."""

    path: tuple[str, ...]
    value: str
    number: int


def leaves(text: str) -> Iterator[Leaf]:
    """Each word of the document under its keys; items of a list have the keys of the list."""
    above: list[tuple[int, str]] = []  # open maps: how far each key is indented
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line[0] == "#" or line in ("---", "..."):
            continue
        indent = len(raw) - len(raw.lstrip(" "))
        item = line == "-" or line.startswith("- ")
        while above and (above[-1][0] > indent or (above[-1][0] == indent and not item)):
            above.pop()
        key, value = ("", line[1:].strip()) if item else _pair(line)
        if not item:
            if not key or len(above) >= _DEEPEST:
                continue
            above.append((indent, key))
        word = _word(value)
        if word:
            yield Leaf(tuple(name for _, name in above), word, number)


def _pair(line: str) -> tuple[str, str]:
    """Key and value; a quoted key may hold colons, and a plain one those that no blank follows."""
    if line[0] in "\"'":
        end = line.find(line[0], 1)
        colon = line[end + 1 : end + 2]
        return (line[1:end], line[end + 2 :].strip()) if end > 0 and colon == ":" else ("", "")
    if line[-1] == ":" and ": " not in line:
        return line[:-1].rstrip(), ""
    key, colon, value = line.partition(": ")
    return (key.rstrip(), value.strip()) if colon else ("", "")


def _word(value: str) -> str:
    if value[:1] in ('"', "'"):
        end = value.find(value[0], 1)
        return value[1:end] if end > 0 else ""
    if not value or value[0] in _OTHER:
        return ""
    return value.partition(" #")[0].rstrip()
