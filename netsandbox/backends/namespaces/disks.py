"""Devices by which root reads and writes disks below every file system, and so past everything that is hidden there.

Only root's own sessions see them as they are: for others their owner is somebody else (a group such as `disk` aside).
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

DEVICES = "/dev"
PASSED_OVER = ("shm", "mqueue", "pts", "hugepages")  # no devices, or none of disks
RAW_MAJORS = (21, 162)  # character devices of disks: sg(4), raw(8)


def disks(folder: str = DEVICES) -> Iterator[str]:
    """Those in *folder* and in its folders; a link leads to one of them."""
    for entry in _entries(folder):
        try:
            seen = entry.stat(follow_symlinks=False)
        except OSError:  # it was taken out
            continue
        if stat.S_ISDIR(seen.st_mode) and not (folder == DEVICES and entry.name in PASSED_OVER):
            yield from disks(entry.path)
        elif is_disk(seen.st_mode, seen.st_rdev):
            yield entry.path


def is_disk(mode: int, device: int) -> bool:
    return stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and os.major(device) in RAW_MAJORS)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
