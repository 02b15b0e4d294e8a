"""The replies of the control socket, each one line of ASCII JSON. Pure.

The line is bounded whatever the values are: when it gets too long, texts and lists are cut shorter until it fits.
"""

from __future__ import annotations

from netsandbox.runtime.json_writer import JsonWriter

VERSION = 1  # of the replies: readers take no other
MAX_REPLY = 1 << 20
BOUNDS = (4096, 256, 64)  # characters of a text and members of a list, until the line fits
TOO_LONG = b'{"error":"too long"}\n'


def encode(value: object) -> bytes:
    for bound in BOUNDS:
        parts: list[str] = []
        room = MAX_REPLY - 1
        for piece in JsonWriter(bound, bound).pieces(value):
            parts.append(piece)
            room -= len(piece)
            if room < 0:
                break
        else:
            return "".join(parts).encode("ascii") + b"\n"
    return TOO_LONG
