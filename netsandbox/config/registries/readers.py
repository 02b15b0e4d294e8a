"""Parsers of untrusted settings files (pure): INI of two kinds, lines of pairs, TOML, YAML, XML.

Each parser takes linear time. INI, YAML and lines are never an error: anything that is not clearly a setting is
skipped. `configparser` needs quadratic time for a long line of pip's INI, and cannot read npm's at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from netsandbox.frozen import frozen

MAX_DOTS = 1000  # in a line of TOML: tomllib takes quadratic time over the parts of one key
MAX_YAML_DEPTH = 8
MAX_XML_DEPTH = 32
_NOT_PLAIN = "&*!|>{}[]%@`"  # the first characters of YAML values that are not plain text


class BadFile(ValueError):
    """The file cannot be used. The message is one line that continues its name."""


@frozen
class Line:
    """One value, the keys that lead to it, and its line. In INI files the keys are the section and the key."""

    keys: tuple[str, ...]
    value: str
    number: int


def npm_ini(text: str) -> Iterator[Line]:
    """`key = value`, `key[] = value`; comments begin with `;` or `#`; quotes around values are removed."""
    section = ""
    for number, line in _lines(text, ";#"):
        if line[0] == "[" and line[-1] == "]":
            section = line[1:-1].strip()
            continue
        key, equals, value = line.partition("=")
        if equals:
            yield Line((section, _npm_value(key).removesuffix("[]")), _npm_value(value), number)


def _npm_value(raw: str) -> str:
    text = raw.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    for at, char in enumerate(text):
        if char in ";#" and text[at - 1 : at] != "\\":
            return text[:at].rstrip()
    return text


def pip_ini(text: str) -> Iterator[Line]:
    """`key = value` or `key: value`; deeper lines continue the value; comments are lines of their own."""
    section, key, number, depth = "", "", 0, 0
    values: list[str] = []
    for at, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        indent = len(raw) - len(raw.lstrip())
        if key and indent > depth:
            values.append(line)
            continue
        if key:
            yield Line((section, key), " ".join(values), number)
        key, depth = "", indent
        if line[0] == "[" and "]" in line:
            section = line[1 : line.rindex("]")]
            continue
        ends = [end for end in (line.find("="), line.find(":")) if end >= 0]
        if ends and line[: min(ends)].rstrip():
            value = line[min(ends) + 1 :].strip()
            key, values, number = line[: min(ends)].rstrip().lower(), [value] if value else [], at
    if key:
        yield Line((section, key), " ".join(values), number)


def pairs(text: str, separator: str) -> Iterator[Line]:
    """A key, the separator and a value on each line."""
    for number, line in _lines(text, "\0"):
        key, found, value = line.partition(separator)
        if found:
            yield Line((key.strip(),), value.strip(), number)


def _lines(text: str, comments: str) -> Iterator[tuple[int, str]]:
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if line and line[0] not in comments:
            yield number, line


def yaml(text: str) -> Iterator[Line]:
    """Maps by indentation, lists and quoted text. Items of a list have the keys of the list. Everything else of YAML
    (anchors, flow collections, folded text, tags) is skipped."""
    above: list[tuple[int, str]] = []  # open maps: how far each key is indented
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line[0] == "#" or line in ("---", "..."):
            continue
        indent = len(raw) - len(raw.lstrip(" "))
        item = line == "-" or line.startswith("- ")
        while above and (above[-1][0] > indent or (above[-1][0] == indent and not item)):
            above.pop()
        key, value = ("", line[1:].strip()) if item else _yaml_pair(line)
        if not item:
            if not key or len(above) >= MAX_YAML_DEPTH:
                continue
            above.append((indent, key))
        plain = _yaml_value(value)
        if plain:
            yield Line(tuple(name for _, name in above), plain, number)


def _yaml_pair(line: str) -> tuple[str, str]:
    """Key and value; a quoted key may hold colons, and a plain one those that no blank follows."""
    if line[0] in "\"'":
        end = line.find(line[0], 1)
        colon = line[end + 1 : end + 2]
        return (line[1:end], line[end + 2 :].strip()) if end > 0 and colon == ":" else ("", "")
    if line[-1] == ":" and ": " not in line:
        return line[:-1].rstrip(), ""
    key, colon, value = line.partition(": ")
    return (key.rstrip(), value.strip()) if colon else ("", "")


def _yaml_value(value: str) -> str:
    if value[:1] in ('"', "'"):
        end = value.find(value[0], 1)
        return value[1:end] if end > 0 else ""
    if not value or value[0] in _NOT_PLAIN:
        return ""
    return value.partition(" #")[0].rstrip()


def toml(text: str) -> dict[str, object]:
    import tomllib

    if any(line.count(".") > MAX_DOTS for line in text.split("\n")):
        raise BadFile("has a line that is too long for a key")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):  # ValueError also for numbers of thousands of digits
        raise BadFile("is not valid TOML") from None


def table(value: object, *keys: str) -> dict[str, object]:
    """The table at *keys*; empty where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def text_at(value: object, *keys: str) -> str:
    """The string at *keys*; empty where there is none."""
    *above, last = keys
    found = table(value, *above).get(last)
    return found if isinstance(found, str) else ""


def tables(value: object) -> Iterator[dict[str, object]]:
    """Each table of an array of tables."""
    return (each for each in (value if isinstance(value, list) else ()) if isinstance(each, dict))


def texts(value: object) -> Iterator[str]:
    """Each string of an array, or the one that is there in its place."""
    return (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str))


@frozen
class Element:
    """An XML element that holds text only: its path without name spaces, its text, and the line where it ends."""

    path: tuple[str, ...]
    text: str
    number: int
    parent: int  # the same for the children of one element


def xml(data: bytes) -> list[Element]:
    """The elements with text in them, in the order in which they end. A document type is refused: settings have none,
    and it is what lets a document grow without bounds."""
    from xml.parsers import expat

    found: list[Element] = []
    path: list[str] = []
    texts: list[str] = []
    parents = [0]
    opened = 0

    def start(name: str, _: dict[str, str]) -> None:
        nonlocal opened
        opened += 1
        parents.append(opened)
        path.append(name.rpartition(":")[2])
        texts.clear()
        if len(path) > MAX_XML_DEPTH:
            raise BadFile("is nested too deeply")

    def end(_: str) -> None:
        text = "".join(texts).strip()
        parents.pop()
        if text:
            found.append(Element(tuple(path), text, parser.CurrentLineNumber, parents[-1]))
        path.pop()
        texts.clear()

    def doctype(*_: object) -> None:
        raise BadFile("has a document type")

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = doctype
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = texts.append
    try:
        parser.Parse(data, True)  # noqa: FBT003 (its second argument has no name)
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise error if isinstance(error, BadFile) else BadFile("is not valid XML") from None
    return found
