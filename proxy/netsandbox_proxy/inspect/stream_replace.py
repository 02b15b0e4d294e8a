"""Replaces texts in a stream of bytes by others of the same length (pure).

A text that a border between two parts cuts is found too: the end of a part that could begin a text is kept until it is
clear. What is kept depends on the kinds of characters alone, which the replacement shows too: a reader who sees what is
kept could otherwise find a text out character by character, by a server that shows what the reader wrote. Bytes that
both texts have in common, which is the known prefix of a token, are passed on at once, so that an answer that ends with
such a byte does not wait.
"""

from __future__ import annotations

from netsandbox.policy.placeholders import CLASSES, PREFIXES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_KINDS = bytes.maketrans("".join(CLASSES).encode(), b"".join(kind[:1].encode() * len(kind) for kind in CLASSES))
_BASE64 = bytes.maketrans("".join(CLASSES).encode() + b"+/=", b"a" * 65)
_ANY = bytes(256)


class StreamReplace:
    """*pairs* are texts and their replacements. With themselves as replacements, this only searches."""

    __slots__ = ("_pairs", "_passed", "_tail", "found")

    def __init__(self, pairs: Mapping[bytes, bytes]) -> None:
        longest_first = sorted(pairs.items(), key=lambda pair: -len(pair[0]))
        self._pairs = [(text, other, *_shape(text, other)) for text, other in longest_first]
        self._tail = b""  # what could begin a text
        self._passed = 0  # bytes of the tail that were passed on
        self.found: bytes | None = None  # the first text that was found

    def feed(self, data: bytes) -> bytes:
        """The next bytes that can be passed on."""
        whole = self._tail + data
        for text, other, _, _, _ in self._pairs:
            if text in whole:
                self.found = self.found or text
                whole = whole.replace(text, other)
        start, safe = self._open_end(whole)
        ready = whole[self._passed : safe]
        self._tail, self._passed = whole[start:], safe - start
        return ready

    def end(self) -> bytes:
        """The rest: no text is cut any more."""
        rest, self._tail, self._passed = self._tail[self._passed :], b"", 0
        return rest

    def _open_end(self, whole: bytes) -> tuple[int, int]:
        """Where the first text could begin that is cut by the end, and up to where bytes are the same in any case."""
        start = safe = size = len(whole)
        for text, _, common, table, shape in self._pairs:
            first = max(0, size - len(text) + 1)
            end = whole[first:].translate(table)
            at = end.find(shape[:1])
            while at >= 0:
                if shape.startswith(end[at:]):  # the first one has all others in it
                    start, safe = min(start, first + at), min(safe, first + at + common)
                    break
                at = end.find(shape[:1], at + 1)
        return start, safe


def _shape(text: bytes, other: bytes) -> tuple[int, bytes, bytes]:
    """The length of what both are known to begin with, and the kinds of characters that both have: the table that
    gives them, and what it makes of both."""
    if len(text) != len(other) or not text:
        raise ValueError("a replacement has another length")
    if text == other:
        return len(text), _KINDS, text.translate(_KINDS)
    table = next(each for each in (_KINDS, _BASE64, _ANY) if text.translate(each) == other.translate(each))
    known = (each.encode() for each in PREFIXES)
    common = next((len(each) for each in known if text.startswith(each) and other.startswith(each)), 0)
    return common, table, text.translate(table)
