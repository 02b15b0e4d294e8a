"""An ad-hoc signature of a Mach-O file, checked as the kernel does: page by page."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

CS_ADHOC = 2
SIGNATURE_COMMAND = 16


def check_signature(binary: Any, data: bytes) -> None:
    """*binary* is LIEF's, *data* the same slice as bytes."""
    blob = bytes(binary.code_signature.content)
    (first,) = struct.unpack_from(">I", blob, 16)
    flags, hashes, _, _, count, limit = struct.unpack_from(">IIIIII", blob, first + 12)
    assert flags & CS_ADHOC
    assert limit == binary.code_signature.data_offset
    bits = blob[first + 39]
    pages = [data[start : min(start + (1 << bits), limit)] for start in range(0, limit, 1 << bits)]
    assert len(pages) == count
    for number, page in enumerate(pages):
        place = first + hashes + 32 * number
        assert blob[place : place + 32] == hashlib.sha256(page).digest()


def room_for_a_signature(binary: Any) -> bool:
    """codesign adds a load command to what has none yet."""
    end = max(command.command_offset + command.size for command in binary.commands)
    room = min(section.offset for section in binary.sections if section.offset) - end
    return bool(room >= SIGNATURE_COMMAND)
