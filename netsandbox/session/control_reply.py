"""The replies of the control socket, each one line of ASCII JSON. Pure.

The length of a line is bounded for all values: texts and lists are cut until the line fits.
"""

from __future__ import annotations

from netsandbox.audit.record_line import JsonWriter

VERSION = 1  # of the reply format; clients accept no other
MAX_REPLY = 1 << 20
BOUNDS = (4096, 256, 64)  # maximum characters of a text and members of a list, tried in order until the line fits
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
