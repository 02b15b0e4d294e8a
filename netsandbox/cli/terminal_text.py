"""The output of a command as text for a terminal: colours pass, everything else that a terminal would obey is escaped.

`netsandbox run` gives a command the terminal itself, so it can do there what it likes for as long as it runs. Its kept
output is read later, perhaps by another person. It must not retitle the window, move the cursor over what stands there
or make the terminal answer. Pure.
"""

from __future__ import annotations

from codecs import getincrementaldecoder

ESCAPE, PARAMETERS, COLOUR = "\x1b", "0123456789;:", "m"
MAX_SEQUENCE = 64
RESET = "\x1b[0m"


class TerminalText:
    """Takes bytes as they come; a carriage return begins a new line, as does a newline."""

    def __init__(self, *, colours: bool) -> None:
        self._decode = getincrementaldecoder("utf-8")("backslashreplace").decode
        self._colours = colours
        self._held = ""  # the start of a sequence, or a carriage return, whose rest has not come yet

    def feed(self, data: bytes, *, final: bool = False) -> str:
        text = self._held + self._decode(data, final)
        self._held = ""
        shown: list[str] = []
        at = 0
        while at < len(text):
            end = self._end(text, at)
            if end > len(text) and not final:
                self._held = text[at:]
                break
            shown.append(self._shown(text[at:end]))
            at = end
        return "".join(shown)

    def _end(self, text: str, at: int) -> int:
        """Where the part that begins at *at* ends; beyond the text if that is not known yet."""
        if text[at] == "\r":
            return at + 2 if text[at + 1 : at + 2] in ("", "\n") else at + 1
        if text[at] != ESCAPE:
            return at + 1
        if at + 1 == len(text):
            return at + 2
        if text[at + 1] != "[":
            return at + 1
        end = at + 2
        while end < len(text) and end - at < MAX_SEQUENCE and text[end] in PARAMETERS:
            end += 1
        if end - at == MAX_SEQUENCE or (end < len(text) and text[end] != COLOUR):
            return at + 1
        return end + 1

    def _shown(self, part: str) -> str:
        if part in ("\n", "\t") or part.isprintable():
            return part
        if part.startswith("\r"):
            return "\n"
        if part.startswith(ESCAPE) and part.endswith(COLOUR):
            return part if self._colours else ""
        return ascii(part)[1:-1]
