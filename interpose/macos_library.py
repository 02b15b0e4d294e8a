"""Builds the preload library for macOS on any system: both architectures by the `ziglang` package, in one file.

Rules: the same sources give the same bytes, whatever the folder. zig's linker writes the newest SDK that it knows
into the library and takes no option for another; Macs are reported to kill callers of `sandbox_init` that were linked
against SDK 27. So the number is set to SDK afterwards, and the signature's page hashes are made to fit. zig signs
arm64, ad hoc, since no Mac runs that unsigned; x86_64 it leaves unsigned, as Intel allows. Both are to be signed
again where they are installed (`codesign --force --sign -`): macOS 26 is reported to kill some signatures that were
made elsewhere. The slices are joined here, byte for byte: a tool that lays them out anew would break the signature.

`python interpose/macos_library.py FILE` builds it.
"""

from __future__ import annotations

import hashlib
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "src"
NAME = "libnetsandbox_interpose.dylib"
MINIMUM = "11.0"
SDK = (14, 0)
ARCHITECTURES = {"aarch64": (0x0100000C, 0), "x86_64": (0x01000007, 3)}  # <mach/machine.h>: type and subtype
ZIG = [sys.executable, "-m", "ziglang", "cc"]
FLAGS = [
    *("-std=gnu11", "-Os", "-g0", "-fstack-protector-strong", "-fvisibility=hidden"),
    *("-Wall", "-Wextra", "-Werror", "-dynamiclib", "-install_name", f"@rpath/{NAME}"),
]
# <mach-o/loader.h> and <mach-o/fat.h>
HEADER_BYTES = 32
LC_CODE_SIGNATURE, LC_BUILD_VERSION = 0x1D, 0x32
FAT_MAGIC = 0xCAFEBABE
PAGE_BITS = 14  # arm64's pages, the larger ones
# <kern/cs_blobs.h>
CODE_DIRECTORY, SHA256 = 0xFADE0C02, 2


def build(product: Path, sources: Path = SOURCES) -> Path:
    """The universal library at *product*."""
    slices = [compile_slice(architecture, sources) for architecture in ARCHITECTURES]
    unfinished = product.with_name(f"{product.name}.unfinished")
    unfinished.write_bytes(join(slices))
    unfinished.chmod(0o755)
    return unfinished.replace(product)


def compile_slice(architecture: str, sources: Path = SOURCES) -> bytes:
    """The library for one architecture, its SDK set and its signature, if it has one, made right again."""
    # Names without folders, so that none of them can reach the product.
    units = sorted(source.name for source in sources.glob("*.c"))
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch, NAME)
        command = [*ZIG, "-target", f"{architecture}-macos.{MINIMUM}", *FLAGS, *units, "-o", str(target)]
        done = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"the library does not compile for {architecture}:\n{done.stderr}")
        library = bytearray(target.read_bytes())
    set_sdk(library)
    sign_again(library)
    return bytes(library)


def join(slices: Sequence[bytes]) -> bytes:
    """A universal file: a table of big-endian numbers, then each slice on a page of its own."""
    table = struct.pack(">II", FAT_MAGIC, len(slices))
    body = bytearray()
    start = 1 << PAGE_BITS
    for (kind, subtype), one in zip(ARCHITECTURES.values(), slices, strict=True):
        body += bytes(-len(body) % start)
        table += struct.pack(">IIIII", kind, subtype, start + len(body), len(one), PAGE_BITS)
        body += one
    return table.ljust(start, b"\0") + bytes(body)


def set_sdk(library: bytearray) -> None:
    (place,) = _commands(library, LC_BUILD_VERSION)
    struct.pack_into("<I", library, place + 16, SDK[0] << 16 | SDK[1] << 8)


def sign_again(library: bytearray) -> None:
    """Every page hash of an ad-hoc signature, anew; nothing else is in such a signature that the SDK could change."""
    for command in _commands(library, LC_CODE_SIGNATURE):
        (blob,) = struct.unpack_from("<I", library, command + 8)
        (first,) = struct.unpack_from(">I", library, blob + 16)
        directory = blob + first
        magic, hashes, _, _, count, limit = struct.unpack_from(">I12xIIIII", library, directory)
        size, kind, _, bits = struct.unpack_from("4B", library, directory + 36)
        if (magic, kind) != (CODE_DIRECTORY, SHA256):
            raise RuntimeError("the linker signs in a way that is not known here; the SDK cannot be changed")
        for page in range(count):
            digest = hashlib.sha256(library[page << bits : min((page + 1) << bits, limit)]).digest()
            library[directory + hashes + page * size : directory + hashes + (page + 1) * size] = digest[:size]


def _commands(library: bytearray, wanted: int) -> Iterator[int]:
    """Where the load commands of a kind begin."""
    (count,) = struct.unpack_from("<I", library, 16)
    place = HEADER_BYTES
    for _ in range(count):
        kind, size = struct.unpack_from("<II", library, place)
        if kind == wanted:
            yield place
        place += size


if __name__ == "__main__":
    build(Path(sys.argv[1]))
