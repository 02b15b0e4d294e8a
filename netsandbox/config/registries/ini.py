"""Two formats of lines with sections: npm's and pip's (pure; linear, and never an error).

`configparser` reads pip's format with a pattern that takes quadratic time on a long line, and npm's not at all.
"""

from __future__ import annotations

from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@frozen
class Line:
    """One setting and where it stands."""

    section: str
    key: str
    value: str
    number: int


def npm_lines(text: str) -> Iterator[Line]:
    """`key = value`, `key[] = value`; comments begin with `;` or `#`, quoted values are taken out of their quotes."""
    section = ""
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line[0] in ";#":
            continue
        if line[0] == "[" and line[-1] == "]":
            section = line[1:-1].strip()
            continue
        key, equals, value = line.partition("=")
        if equals:
            yield Line(section, _npm_value(key).removesuffix("[]"), _npm_value(value), number)


def _npm_value(raw: str) -> str:
    text = raw.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    for at, char in enumerate(text):
        if char in ";#" and text[at - 1 : at] != "\\":
            return text[:at].rstrip()
    return text


def pip_lines(text: str) -> Iterator[Line]:
    """`key = value` or `key: value`; deeper lines go on with the value; comments are lines of their own."""
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
            yield Line(section, key, " ".join(values), number)
        key, depth = "", indent
        if line[0] == "[" and "]" in line:
            section = line[1 : line.rindex("]")]
            continue
        name, value = _pair(line)
        if name:
            key, values, number = name.lower(), [value] if value else [], at
    if key:
        yield Line(section, key, " ".join(values), number)


def _pair(line: str) -> tuple[str, str]:
    ends = [at for at in (line.find("="), line.find(":")) if at >= 0]
    return (line[: min(ends)].rstrip(), line[min(ends) + 1 :].strip()) if ends else ("", "")
