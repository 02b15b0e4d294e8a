"""An ad-hoc signature of a Mach-O file, checked as the kernel does: page by page."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

CS_ADHOC = 2
SIGNATURE_ALIGNMENT = 16
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


def check_order(binary: Any) -> None:
    """What codesign's helper asks of a file that it is to sign again: all that is in __LINKEDIT in this order, each
    where the one before it ends, strings by whole words if need be, the signature last and to the very end."""
    segment = next(one for one in binary.segments if one.name == "__LINKEDIT")
    info, symbols, indirect = binary.dyld_info, binary.symbol_command, binary.dynamic_symbol_command
    assert (indirect.nb_local_relocations, indirect.nb_external_relocations) == (0, 0)
    tables = [
        *((info.rebase[0], info.rebase[1]), (info.bind[0], info.bind[1]), (info.weak_bind[0], info.weak_bind[1])),
        *((info.lazy_bind[0], info.lazy_bind[1]), (info.export_info[0], info.export_info[1])),
        (binary.function_starts.data_offset, binary.function_starts.data_size),
        (binary.data_in_code.data_offset, binary.data_in_code.data_size),
        (symbols.symbol_offset, symbols.numberof_symbols * 16),
        (indirect.indirect_symbol_offset, indirect.nb_indirect_symbols * 4),
    ]
    end = segment.file_offset
    for offset, size in tables:
        if size:
            assert offset == end
            end += size
    assert symbols.strings_offset in (end, end + -end % 8)
    end = symbols.strings_offset + symbols.strings_size
    if binary.has_code_signature:
        end += -end % SIGNATURE_ALIGNMENT
        assert binary.code_signature.data_offset == end
        end += binary.code_signature.data_size
    assert end == segment.file_offset + segment.file_size
