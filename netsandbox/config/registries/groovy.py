"""Repositories in Gradle's scripts, in Groovy or Kotlin, as far as they are literals (pure).

The scripts are programs, and none is run. Only a literal without computed parts is read, where a repository is
declared: `maven { url "https://…" }`, `url = uri("https://…")`, `maven("https://…")`. Repositories for publishing are
ignored, and so is everything else.
"""

from __future__ import annotations

import re

from netsandbox.frozen import frozen

BUILT_IN = ("mavenCentral", "google", "gradlePluginPortal", "jcenter")  # only Gradle knows their hosts
_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<long>\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z))
    |(?P<text>"(?:[^"\\\n]|\\.)*(?:"|(?=\n)|\\?\Z)|'(?:[^'\\\n]|\\.)*(?:'|(?=\n)|\\?\Z))
    |(?P<word>[A-Za-z_]\w*)
    |(?P<mark>[^\s\w])""",
    re.DOTALL | re.VERBOSE | re.ASCII,
)
_KINDS = ("maven", "ivy")
_SETTERS = ("url", "setUrl")
_AROUND = ("(", "=", "uri")  # what may stand between a setter and its text
_MAX_OPEN = 200
_MAX_BEFORE = 64  # words that are looked back at


@frozen
class Repository:
    """`url` is empty for a repository that is built into Gradle; `name` then names it."""

    number: int
    url: str = ""
    name: str = ""


def repositories(text: str) -> list[Repository]:
    """The repositories that *text* declares, in its order."""
    found: list[Repository] = []
    blocks: list[str] = []
    before: list[str] = []  # the words and marks since the last brace, or the last string
    number, at = 1, 0
    for token in _TOKEN.finditer(text):
        number += text.count("\n", at, token.start())
        at = token.start()
        value = token.group()
        if token.lastgroup == "text":
            if _is_address(value) and _declares(blocks, before):
                found.append(Repository(number, url=value[1:-1]))
            before.append("")
        elif value == "{":
            if len(blocks) == _MAX_OPEN:
                return found
            blocks.append(_name(before))
            before = []
        elif value == "}":
            before = []
            blocks = blocks[:-1]
        elif token.lastgroup in ("word", "mark"):
            if value == "(" and before[-1:] and before[-1] in BUILT_IN and _fetches(blocks):
                found.append(Repository(number, name=before[-1]))
            before.append(value)
        del before[:-_MAX_BEFORE]
    return found


def _is_address(literal: str) -> bool:
    """Whether the literal has no computed part and ends on its line."""
    return literal[1:9] == "https://" and literal[-1] == literal[0] and not set(literal) & {"$", "\\"}


def _fetches(blocks: list[str]) -> bool:
    return "repositories" in blocks and "publishing" not in blocks


def _declares(blocks: list[str], before: list[str]) -> bool:
    """Whether a text here is the address of a repository."""
    words = [word for word in reversed(before) if word not in _AROUND][:2]
    if not _fetches(blocks) or not words:
        return False
    if blocks[-1] in _KINDS:
        return words[0] in _SETTERS
    called = words[0] == "maven" or words == ["url", "maven"]  # maven("…"), maven(url = "…")
    return blocks[-1] == "repositories" and called and before[_last(before, "maven") + 1 :][:1] == ["("]


def _last(before: list[str], word: str) -> int:
    return len(before) - 1 - before[::-1].index(word)


def _name(before: list[str]) -> str:
    """The name of a block: the last word before its brace that is not inside of parentheses."""
    depth = 0
    for word in reversed(before):
        depth += (word == ")") - (word == "(")
        if depth == 0 and word.isidentifier():
            return word
    return ""
