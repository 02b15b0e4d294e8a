"""S-expressions of the user's Seatbelt rules: text in, forms out. Pure.

The reader takes lists, words, strings and comments, and refuses every other character. `(param "NAME")` and
`(string-append …)` are the only forms that are evaluated: they become the string they stand for. Depth and size are
bounded, and no recursion follows the text.
"""

from __future__ import annotations

import re

from netsandbox.errors import UsageError
from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_CHARACTERS = 64 << 10
MAX_DEPTH = 12
_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n\f]+|;[^\n]*)|(?P<open>\()|(?P<close>\))"""
    r"""|\#"(?P<raw>[^"\0]*)"|"(?P<text>(?:[^"\\\0]|\\[^\0])*)"|(?P<word>[A-Za-z0-9*_-]+)""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}


class RawRuleError(UsageError):
    """Raw rules that cannot go into a profile, with their line."""

    def __init__(self, text: str, line: int = 1) -> None:
        super().__init__(text)
        self.line = line


@frozen
class Word:
    """A name or a number, such as `file-read*`."""

    name: str
    line: int


@frozen
class Form:
    """A list in parentheses."""

    items: tuple[Form | Word | str, ...]
    line: int

    @property
    def head(self) -> str:
        first = self.items[0] if self.items else None
        return first.name if isinstance(first, Word) else ""


def read_forms(text: str, parameters: Mapping[str, str]) -> tuple[list[Form], list[tuple[int, str]]]:
    """The forms of *text*, and each backslash that Scheme drops: its line and the character after it."""
    if len(text) > MAX_CHARACTERS:
        raise RawRuleError(f"more than {MAX_CHARACTERS} characters; make it shorter")
    forms: list[Form | Word | str] = []
    stack: list[tuple[list[Form | Word | str], int]] = []
    dropped: list[tuple[int, str]] = []
    at, line = 0, 1
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            what = "a string that begins here is never closed" if text[at] == '"' else f"{text[at]!a} is not understood"
            raise RawRuleError(f"{what}; correct it", line)
        items = stack[-1][0] if stack else forms
        if token["open"]:
            if len(stack) == MAX_DEPTH:
                raise RawRuleError(f"lists are nested more than {MAX_DEPTH} deep; flatten them", line)
            stack.append(([], line))
        elif token["close"]:
            if not stack:
                raise RawRuleError("this parenthesis closes nothing; remove it", line)
            inner, began = stack.pop()
            (stack[-1][0] if stack else forms).append(_evaluated(Form(tuple(inner), began), parameters))
        elif token["word"]:
            items.append(Word(token["word"], line))
        elif token["blank"] is None:
            items.append(_string(token, line, dropped))
        line += token[0].count("\n")
        at = token.end()
    if stack:
        raise RawRuleError("a list that begins here is never closed; add a parenthesis", stack[-1][1])
    if not all(isinstance(form, Form) for form in forms):
        raise RawRuleError("raw rules begin with (allow or (deny, and nothing else stands between them")
    return [form for form in forms if isinstance(form, Form)], dropped


def _string(token: re.Match[str], line: int, dropped: list[tuple[int, str]]) -> str:
    if token["raw"] is not None:
        text = token["raw"]
        if (len(text) - len(text.rstrip("\\"))) % 2:
            raise RawRuleError('it is not known how \\" ends in #"…"; write the quote as a dot', line)
        return text

    def unescaped(match: re.Match[str]) -> str:
        char = match[1]
        if char not in _ESCAPED:
            if char in "0123456789xX" or not (char.isascii() and char.isprintable()):
                raise RawRuleError(f"the escape \\{char!a} is not understood; write \\\\ for a backslash", line)
            dropped.append((line + token["text"].count("\n", 0, match.start()), char))
        return _ESCAPED.get(char, char)

    return _ESCAPE.sub(unescaped, token["text"])


def _evaluated(form: Form, parameters: Mapping[str, str]) -> Form | str:
    """The text that `param` and `string-append` stand for; any other form as it is."""
    values = form.items[1:]
    if form.head == "string-append":
        texts = [item for item in values if isinstance(item, str)]
        if len(texts) != len(values):
            raise RawRuleError("only texts, (param …) and (string-append …) make a text here", form.line)
        return "".join(texts)
    if form.head == "param":
        if len(values) == 1 and isinstance(values[0], str) and values[0] in parameters:
            return parameters[values[0]]
        raise RawRuleError(f"there is no such parameter; use one of {', '.join(parameters)}", form.line)
    return form
