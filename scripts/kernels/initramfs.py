"""An initramfs of our own: busybox, the modules that the root disk needs, and guest/init. Pure, but for reading files.

The maintainer scripts of the packages never run, so there is no initramfs of Debian's, and none is needed for another
architecture. The format is cpio's "newc" (Documentation/driver-api/early-userspace/buffer-format.rst).
"""

from __future__ import annotations

import lzma
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

# The last ones are looked up by name (ext4's checksums), so no dependency lists them.
DISK_MODULES = ("virtio_pci", "virtio_blk", "ext4", "crc32c_generic")
FOLDERS = ("bin", "dev", "modules", "new", "proc", "sys")


def module_name(path: str) -> str:
    """As modprobe spells it: `crc32c_generic` for `kernel/crypto/crc32c-generic.ko.xz`."""
    return PurePosixPath(path).name.partition(".ko")[0].replace("-", "_")


def load_order(dependencies: str, wanted: Iterable[str]) -> list[str]:
    """Paths of the *wanted* modules and what they need, from modules.dep; a module that is built in is not there."""
    rows = {}
    for line in dependencies.splitlines():
        path, _, needed = line.partition(":")
        rows[module_name(path)] = [path, *needed.split()]
    ordered: list[str] = []
    for name in wanted:
        ordered += [path for path in reversed(rows.get(name, [])) if path not in ordered]
    return ordered


def unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def entry(number: int, name: str, mode: int, data: bytes = b"") -> bytes:
    """One file of the archive: thirteen numbers, the name, the data; both are padded to four bytes."""
    encoded = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
    head = b"070701" + b"".join(b"%08X" % value for value in fields) + encoded
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def archive(files: Mapping[str, bytes]) -> bytes:
    """Folders, and executable files by their names."""
    entries = [(name, stat.S_IFDIR | 0o755, b"") for name in FOLDERS]
    entries += [(name, stat.S_IFREG | 0o755, data) for name, data in files.items()]
    made = b"".join(entry(number, *each) for number, each in enumerate(entries, 1))
    return made + entry(0, "TRAILER!!!", 0)


def initramfs(busybox: bytes, init: bytes, modules: Path) -> bytes:
    """The archive for the kernel whose modules are in the folder *modules*. Names keep the order of loading."""
    paths = load_order((modules / "modules.dep").read_text("utf-8"), DISK_MODULES)
    loaded = {
        f"modules/{number:02}-{module_name(path)}.ko": unpacked(modules / path) for number, path in enumerate(paths)
    }
    return archive({"bin/busybox": busybox, "bin/sh": busybox, "init": init, **loaded})
