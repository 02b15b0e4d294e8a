"""Reads and edits a configuration file of git, as git-config(1) describes its syntax. Pure.

What git would refuse is a `ValueError` here, and so are settings before the first section. Names are those that
`git config --list` prints: section and key in lower case, the subsection as it is written.
"""

from __future__ import annotations

from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    Values = dict[tuple[str, str], list[str | None]]

MAX_CONFIG = 1 << 20  # bytes of a file that is read
ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "\\": "\\", '"': '"'}
WRITTEN = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\b": "\\b"}
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
NAME = LETTERS | frozenset("0123456789-")
SPACE = " \t\r\n"


@frozen
class Line:
    """A setting, or the header of a section, whose key is empty. `prefix` is `remote.origin`. A `value` of None is a
    setting without `=`, which means true. `start` and `end` are its place in the text."""

    prefix: str
    key: str
    value: str | None
    start: int
    end: int

    @property
    def is_true(self) -> bool:
        return self.value is None or self.value.lower() in ("true", "yes", "on", "1")


def parse(text: str) -> list[Line]:
    lines: list[Line] = []
    at = 1 if text.startswith("\ufeff") else 0
    prefix = ""
    while at < len(text):
        if text[at] in SPACE:
            at += 1
        elif text[at] in "#;":
            at = _line_end(text, at)
        elif text[at] == "[":
            prefix, end = _header(text, at + 1)
            lines.append(Line(prefix, "", None, at, end))
            at = end
        else:
            if not prefix or text[at] not in LETTERS:
                raise ValueError(f"no setting at {at}")
            line = _setting(text, at, prefix)
            lines.append(line)
            at = line.end
    return lines


def values(lines: Iterable[Line]) -> Values:
    """All values of each setting by prefix and key, in their order."""
    found: Values = {}
    for line in lines:
        if line.key:
            found.setdefault((line.prefix, line.key), []).append(line.value)
    return found


def _line_end(text: str, at: int) -> int:
    """The place after the next newline."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _header(text: str, at: int) -> tuple[str, int]:
    start = at
    while at < len(text) and (text[at] in NAME or text[at] == "."):
        at += 1
    name = text[start:at].lower()
    if name and text[at : at + 1] == "]":
        return name, at + 1
    while text[at : at + 1] in (" ", "\t", "\r"):
        at += 1
    if not name or text[at : at + 1] != '"':
        raise ValueError(f"no section at {start}")
    at += 1
    section = ""
    while (char := text[at : at + 1]) not in ('"', "\n", ""):
        if char == "\\":
            at += 1
            char = text[at : at + 1]
            if char in ("\n", ""):
                break
        section += char
        at += 1
    if text[at : at + 2] != '"]':
        raise ValueError(f"no end of the section at {start}")
    return f"{name}.{section}", at + 2


def _setting(text: str, at: int, prefix: str) -> Line:
    start = at
    while text[at : at + 1] in NAME:
        at += 1
    key = text[start:at].lower()
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    end = _line_end(text, at)
    rest = text[at:end].removesuffix("\n").removesuffix("\r")
    if not rest:
        return Line(prefix, key, None, start, end)
    if rest[0] != "=":
        raise ValueError(f"no value at {at}")
    rest = rest[1:]
    if not any(char in rest for char in '"\\#;\r'):
        return Line(prefix, key, rest.strip(" \t").replace("\t", " "), start, end)
    value, end = _value(text, at + 1)
    return Line(prefix, key, value, start, end)


def _value(text: str, at: int) -> tuple[str, int]:
    """A value with quotes, escapes, comments or lines that go on, and the place after it."""
    value, spaces, quoted = "", 0, False
    while True:
        char, at = _character(text, at)
        if char in ("\n", ""):
            if quoted:
                raise ValueError(f"no end of the quotes before {at}")
            return value, at
        if char in SPACE and not quoted:
            spaces += 1 if value else 0
            continue
        if char in "#;" and not quoted:
            return value, _line_end(text, at)
        value, spaces = value + " " * spaces, 0
        if char == "\\":
            char, at = _character(text, at)
            if char == "\n":
                continue
            if char not in ESCAPES:
                raise ValueError(f"unknown escape at {at}")
            value += ESCAPES[char]
        elif char == '"':
            quoted = not quoted
        else:
            value += char


def _character(text: str, at: int) -> tuple[str, int]:
    if text.startswith("\r\n", at):
        return "\n", at + 2
    return text[at : at + 1], at + 1 if at < len(text) else at


def with_values(text: str, prefix: str, key: str, wanted: Sequence[str]) -> str:
    """*text* with these values of a setting, and with no others of it. Everything else stays as it is written."""
    lines = parse(text)
    own = [line for line in lines if line.prefix == prefix and line.key == key]
    new = "".join(f"\t{key} = {quoted(value)}\n" for value in wanted)
    for line in reversed(own[1:]):
        text = text[: _begin(text, line.start)] + text[line.end :]
    if own:
        first = own[0]
        text = text[: _begin(text, first.start)] + new + text[first.end :]
        return text if new else _without_empty(text, (prefix,))
    if not new:
        return text
    section = [line for line in lines if line.prefix == prefix]
    if not section:
        return f"{ended(text)}{header(prefix)}\n{new}"
    last = section[-1].end
    after = _line_end(text, last)
    if not section[-1].key:  # a header, after which its line goes on
        last = after if not text[last:after].strip(SPACE) else last
    return f"{ended(text[:last])}{new}{text[last:]}"


def _begin(text: str, start: int) -> int:
    """The begin of the line, if only spaces are before *start*."""
    begin = start
    while begin and text[begin - 1] in " \t":
        begin -= 1
    return begin if begin == 0 or text[begin - 1] == "\n" else start


def without(text: str, gone: Collection[tuple[str, str]]) -> str:
    """*text* without these settings, and without sections that are empty then."""
    pieces, at = [], 0
    for line in parse(text):
        if (line.prefix, line.key) in gone:
            pieces.append(text[at : _begin(text, line.start)])
            at = line.end
    whole = "".join(map(ended, pieces)) + text[at:] if pieces else text
    return _without_empty(whole, {prefix for prefix, _ in gone})


def _without_empty(text: str, prefixes: Collection[str]) -> str:
    """*text* without the headers of *prefixes* that have no setting."""
    lines = parse(text)
    pieces, at = [], 0
    for number, line in enumerate(lines, 1):
        if line.key or line.prefix not in prefixes or (number < len(lines) and lines[number].key):
            continue
        end = line.end
        while text[end : end + 1] in (" ", "\t", "\r"):
            end += 1
        if text[end : end + 1] in ("\n", ""):  # nothing else is on its line
            pieces.append(text[at : line.start])
            at = end + 1
    return "".join([*pieces, text[at:]])


def ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def header(prefix: str) -> str:
    section, dot, name = prefix.partition(".")
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'[{section} "{escaped}"]' if dot else f"[{section}]"


def quoted(value: str) -> str:
    if value == value.strip() and value and not any(char in value for char in '"\\#;\n\t\r\b'):
        return value
    return '"' + "".join(WRITTEN.get(char, char) for char in value) + '"'
