"""Characters in, forms out. Pure; pieces may be of any size, and the forms are the same however the text is cut.

Any text gives forms or a `ProfileSyntaxError` with a line, never anything else. Depth and size are bounded, and no
recursion follows the text's nesting, so a hostile profile costs no more than its length.

Strings: `"…"` with the escapes `\\"`, `\\\\`, `\\n`, `\\r`, `\\t`. A backslash before another character is dropped, as
Scheme does, and noted, since hardly anybody means that; numbers (`\\x41`, `\\101`) are refused, because what Seatbelt
makes of them is not known here. `#"…"` takes backslashes as they are, which is how regular expressions are written.
"""

from __future__ import annotations

import re

from tests.seatbelt_model.values import Datum, Form, ProfileSyntaxError, Symbol, printable

MAX_CHARACTERS = 4 << 20
MAX_DEPTH = 100
MAX_ATOM = 64 << 10
_BLANK = frozenset(" \t\r\n\f")
_ENDS = _BLANK | frozenset("()\"';")
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_NUMBERS = frozenset("0123456789xX")  # which begin a character by its number
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}\Z")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})\Z")
_BETWEEN, _COMMENT, _ATOM, _STRING, _ESCAPE, _RAW = "between", "comment", "atom", "string", "escape", "raw"
_UNFINISHED = {_STRING: "a string", _ESCAPE: "a string", _RAW: "a string"}


class Reader:
    """Feed it text, then close it. After an error it is of no further use."""

    def __init__(self) -> None:
        self.line = 1
        self.dropped: list[tuple[int, str]] = []  # the line of each backslash that was dropped, and what followed it
        self._forms: list[Datum] = []
        self._open: list[tuple[list[Datum], int]] = []  # the lists that are not closed yet, and where they began
        self._quotes: list[tuple[int, int]] = []  # how many lists were open when a ' came, and its line
        self._state = _BETWEEN
        self._text: list[str] = []
        self._began = 1
        self._size = 0
        self._steps = {
            _BETWEEN: self._between,
            _COMMENT: self._comment,
            _ATOM: self._atom,
            _STRING: self._string,
            _ESCAPE: self._escape,
            _RAW: self._raw,
        }

    def feed(self, text: str) -> None:
        for char in text:
            self._size += 1
            if self._size > MAX_CHARACTERS:
                raise self._error(f"the profile has more than {MAX_CHARACTERS} characters; make it shorter")
            self._steps[self._state](char)
            if char == "\n":
                self.line += 1

    def close(self) -> list[Datum]:
        """Every form of the text."""
        if self._state == _ATOM:
            self._end_atom()
        if self._state in _UNFINISHED:
            raise self._error(
                f"{_UNFINISHED[self._state]} that begins here is never closed; add the quote", self._began
            )
        if self._open:
            raise self._error("a list that begins here is never closed; add a parenthesis", self._open[-1][1])
        if self._quotes:
            raise self._error("nothing follows this quote; remove it", self._quotes[-1][1])
        return self._forms

    def _between(self, char: str) -> None:
        if char in _BLANK:
            return
        if char == ";":
            self._state = _COMMENT
        elif char == "(":
            self._push()
        elif char == ")":
            self._pop()
        elif char == "'":
            self._quotes.append((len(self._open), self.line))
            if len(self._quotes) > MAX_DEPTH:
                raise self._error(f"more than {MAX_DEPTH} quotes one after another; remove some")
        else:
            self._begin(_STRING if char == '"' else _ATOM)
            if char != '"':
                self._atom(char)

    def _comment(self, char: str) -> None:
        if char == "\n":
            self._state = _BETWEEN

    def _atom(self, char: str) -> None:
        if char == '"' and self._text == ["#"]:
            self._begin(_RAW)
        elif char in _ENDS:
            self._end_atom()
            self._between(char)
        else:
            self._add(char)

    def _string(self, char: str) -> None:
        if char == '"':
            self._end("".join(self._text))
        elif char == "\\":
            self._state = _ESCAPE
        else:
            self._add(char)

    def _escape(self, char: str) -> None:
        if char not in _ESCAPES:
            if char in _NUMBERS or not (char.isascii() and char.isprintable()):
                shown = printable(char)
                raise self._error(
                    f'the escape \\{shown} is not one of \\" \\\\ \\n \\r \\t; write \\\\ for a backslash'
                )
            self.dropped.append((self.line, char))
        self._add(_ESCAPES.get(char, char))
        self._state = _STRING

    def _raw(self, char: str) -> None:
        if char != '"':
            self._add(char)
        elif self._text[-1:] == ["\\"] and self._trailing_backslashes() % 2:
            raise self._error('it is not known how \\" ends in #"…"; write the quote as a dot')
        else:
            self._end("".join(self._text))

    def _trailing_backslashes(self) -> int:
        count = 0
        while count < len(self._text) and self._text[-1 - count] == "\\":
            count += 1
        return count

    def _begin(self, state: str) -> None:
        self._state, self._text, self._began = state, [], self.line

    def _add(self, char: str) -> None:
        if char == "\0":
            raise self._error("a NUL character cannot be part of a profile; remove it")
        self._text.append(char)
        if len(self._text) > MAX_ATOM:
            raise self._error(f"a word of more than {MAX_ATOM} characters; make it shorter", self._began)

    def _end_atom(self) -> None:
        self._end(self._word("".join(self._text)))

    def _word(self, text: str) -> Datum:
        if text in ("#t", "#f"):
            return text == "#t"
        if _INTEGER.match(text):
            return int(text)
        if _NUMBER.match(text):
            return float(text)
        if text.startswith("#"):
            raise self._error(f'{printable(text)} is not understood; write #t, #f or #"…"', self._began)
        return Symbol(text, self._began)

    def _end(self, value: Datum) -> None:
        self._state = _BETWEEN
        depth = len(self._open)
        while self._quotes and self._quotes[-1][0] == depth:
            _, line = self._quotes.pop()
            value = Form((Symbol("quote", line), value), line)
        (self._open[-1][0] if self._open else self._forms).append(value)

    def _push(self) -> None:
        if len(self._open) == MAX_DEPTH:
            raise self._error(f"lists are nested more than {MAX_DEPTH} deep; flatten them")
        self._open.append(([], self.line))

    def _pop(self) -> None:
        if not self._open:
            raise self._error("this parenthesis closes nothing; remove it")
        if self._quotes and self._quotes[-1][0] == len(self._open):
            raise self._error("nothing follows this quote; remove it", self._quotes[-1][1])
        items, line = self._open.pop()
        self._end(Form(tuple(items), line))

    def _error(self, text: str, line: int | None = None) -> ProfileSyntaxError:
        return ProfileSyntaxError(text, self.line if line is None else line)


def read(text: str) -> list[Datum]:
    """Every form of *text*."""
    return read_noting(text)[0]


def read_noting(text: str) -> tuple[list[Datum], list[tuple[int, str]]]:
    """The same, and the backslashes that were dropped."""
    reader = Reader()
    reader.feed(text)
    return reader.close(), reader.dropped


def decode(data: bytes) -> str:
    """The text of a profile file; it must be UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ProfileSyntaxError("this is not UTF-8 text; save the profile as UTF-8", line) from None
