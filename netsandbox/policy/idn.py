"""Names beyond ASCII: from a person's spelling to A-labels, and whether an A-label is well formed.

Imported only when such a name is met. `to_alabels` is for text that a person wrote and needs `encodings.idna`, which is
heavy. `valid_alabel` also serves names from the wire, so `encodings.punycode` is kept where imports are sealed (see
`runtime.imports`). Rule kept: a character that some version of IDNA drops, turns into a dot or turns into ASCII
is refused, so no spelling gains or loses a label or imitates an ASCII name.
"""

from __future__ import annotations

# IDNA 2003 and IDNA 2008 map these differently (sharp s, final sigma); the joiners are refused as format characters.
_DEVIATIONS = "\u00df\u1e9e\u03c2"
# Characters that some mapping turns into a full stop.
_DOTS = "\u3002\uff0e\uff61\u2024\ufe52"


def to_alabels(text: str) -> str | None:
    """*text* with every label that is not ASCII replaced by its A-label; None if any character is in doubt."""
    from encodings.idna import ToASCII

    labels = []
    for label in text.split("."):
        if label.isascii():
            labels.append(label)
            continue
        if not all(char.isascii() or _keeps(char) for char in label):
            return None
        try:
            encoded = ToASCII(label).decode("ascii")
        except UnicodeError:
            return None
        if not encoded.startswith("xn--"):
            return None
        labels.append(encoded)
    return ".".join(labels)


def valid_alabel(label: str) -> bool:
    """Whether an `xn--` label is punycode for something that needs it, in its only spelling."""
    from encodings.punycode import punycode_decode, punycode_encode

    try:
        coded = label[4:].encode("ascii")
        decoded: str = punycode_decode(coded, "strict")
    except UnicodeError:
        return False
    if decoded.isascii() or punycode_encode(decoded) != coded:
        return False
    return all(char.isascii() or _plain(char) for char in decoded)


def _keeps(char: str) -> bool:
    """Whether every mapping leaves *char* one or more letters outside ASCII."""
    from encodings.idna import nameprep

    if char in _DEVIATIONS or not _plain(char):
        return False
    try:
        mapped = nameprep(char)
    except UnicodeError:
        return False
    return bool(mapped) and not mapped.isascii() and "." not in mapped


def _plain(char: str) -> bool:
    """Whether *char* is visible and stands for itself: no dot in disguise, no control, format or private character."""
    return char not in _DOTS and char.isprintable()
