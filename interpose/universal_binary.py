"""Builds a Mach-O file for both of a Mac's processors on any system, by the `ziglang` package.

Rules: the same sources give the same bytes, whatever the folder. zig's linker writes the newest SDK that it knows
into the file and takes no option for another; Macs are reported to kill callers of `sandbox_init` that were linked
against SDK 27. So the number is set to SDK afterwards, and the signature's page hashes are made to fit. zig signs
arm64, ad hoc, since no Mac runs that unsigned; x86_64 it leaves unsigned, as Intel allows. Both are signed again where
they are used (`seatbelt/signing.py`): macOS 26 is reported to kill some signatures that were made elsewhere. The
slices are joined here, byte for byte: a tool that lays them out anew would break the signature.

On a Mac the same is done, and not by the Mac's own compiler: that writes the SDK it came with, and builds for one
processor. What a Mac built for itself it then signs.
"""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

MINIMUM = "11.0"
SDK = (14, 0)
ARCHITECTURES = {"aarch64": (0x0100000C, 0), "x86_64": (0x01000007, 3)}  # <mach/machine.h>: type and subtype
ZIG = [sys.executable, "-m", "ziglang", "cc"]
FLAGS = (
    *("-std=gnu11", "-Os", "-g0", "-fstack-protector-strong", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"),
    "-Wl,-headerpad,0x1000",
)
CODESIGN = "/usr/bin/codesign"
# <mach-o/loader.h> and <mach-o/fat.h>
HEADER_BYTES, SECTION_BYTES = 32, 80
LC_SEGMENT_64, LC_CODE_SIGNATURE, LC_BUILD_VERSION = 0x19, 0x1D, 0x32
SIGNATURE_COMMAND = 16
FAT_MAGIC = 0xCAFEBABE
PAGE_BITS = 14  # arm64's pages, the larger ones
# <kern/cs_blobs.h>
CODE_DIRECTORY, SHA256 = 0xFADE0C02, 2


def build(product: Path, name: str, sources: Path, arguments: Sequence[str]) -> Path:
    """The universal file *name* at *product*. *arguments*: more flags, and the units as *sources* has them."""
    slices = [compile_slice(architecture, name, sources, arguments) for architecture in ARCHITECTURES]
    unfinished = product.with_name(f"{product.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(join(slices))
        unfinished.chmod(0o755)
        return unfinished.replace(product)
    finally:
        unfinished.unlink(missing_ok=True)


def loadable(name: str) -> list[str]:
    """Flags for a file that others load by *name*."""
    return ["-dynamiclib", "-install_name", f"@rpath/{name}"]


def compile_slice(architecture: str, name: str, sources: Path, arguments: Sequence[str]) -> bytes:
    """The file for one architecture, its SDK set and its signature, if it has one, made right again."""
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch, name)  # of which the linker makes the signature's identifier
        command = [*ZIG, "-target", f"{architecture}-macos.{MINIMUM}", *FLAGS, *arguments, "-o", str(target)]
        done = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{name} does not compile for {architecture}:\n{done.stderr}")
        made = bytearray(target.read_bytes())
    check_room(made)
    set_sdk(made)
    sign_again(made)
    return bytes(made)


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


def check_room(made: bytearray) -> None:
    """codesign adds a load command. Where there is no room it is reported to write it over the code without a word, and
    to find nothing wrong with that afterwards."""
    (size,) = struct.unpack_from("<I", made, 20)
    content = min(offset for offset in _section_offsets(made) if offset)
    if content - HEADER_BYTES - size < SIGNATURE_COMMAND:
        raise RuntimeError("the linker leaves no room for the signature of an install; use another zig")


def set_sdk(made: bytearray) -> None:
    (place,) = _commands(made, LC_BUILD_VERSION)
    struct.pack_into("<I", made, place + 16, SDK[0] << 16 | SDK[1] << 8)


def sign_again(made: bytearray) -> None:
    """Every page hash of an ad-hoc signature, anew; nothing else is in such a signature that the SDK could change."""
    for command in _commands(made, LC_CODE_SIGNATURE):
        (blob,) = struct.unpack_from("<I", made, command + 8)
        (first,) = struct.unpack_from(">I", made, blob + 16)
        directory = blob + first
        magic, hashes, _, _, count, limit = struct.unpack_from(">I12xIIIII", made, directory)
        size, kind, _, bits = struct.unpack_from("4B", made, directory + 36)
        if (magic, kind) != (CODE_DIRECTORY, SHA256):
            raise RuntimeError("the linker signs in a way that is not known here; the SDK cannot be changed")
        for page in range(count):
            digest = hashlib.sha256(made[page << bits : min((page + 1) << bits, limit)]).digest()
            made[directory + hashes + page * size : directory + hashes + (page + 1) * size] = digest[:size]


def sign(file: Path) -> None:
    """By the Mac itself. Where that fails the linker's signature stays, and the Mac is asked again at the first use."""
    try:
        command = [CODESIGN, "--force", "--sign", "-", str(file)]
        subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"netsandbox: {file.name} is not signed by this Mac: {error}", file=sys.stderr)


def _section_offsets(made: bytearray) -> Iterator[int]:
    """Where each section begins in the file; 0 for those that have nothing there."""
    for place in _commands(made, LC_SEGMENT_64):
        (count,) = struct.unpack_from("<I", made, place + 64)
        for number in range(count):
            yield struct.unpack_from("<I", made, place + 72 + number * SECTION_BYTES + 48)[0]


def _commands(made: bytearray, wanted: int) -> Iterator[int]:
    """Where the load commands of a kind begin."""
    (count,) = struct.unpack_from("<I", made, 16)
    place = HEADER_BYTES
    for _ in range(count):
        kind, size = struct.unpack_from("<II", made, place)
        if kind == wanted:
            yield place
        place += size
