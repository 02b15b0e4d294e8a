"""The repositories that an index of git names. Pure; gitformat-index(5) has the format.

`git status` enters these, wherever they are. A split index replaces entries of a shared one without their paths, and
then every path counts.
"""

from __future__ import annotations

GITLINK = b"\0\0\xe0\0"  # the mode of an entry
MODE, NAME_AFTER = 24, 42  # places in an entry, the second one without the hash
HASHES = (20, 32)  # lengths: SHA-1, SHA-256
MAX_ENTRIES = 2_000_000


def linked_paths(*files: bytes) -> list[bytes]:
    """Paths of repositories in an index and the files that it shares; a ValueError if git could not read them either.
    Which hash it has is not known, so there may be some that git does not find."""
    entries: list[tuple[bytes, bool]] = []
    for data in files if any(GITLINK in data for data in files) else ():
        found = [_entries(data, length) for length in HASHES]
        if found == [None] * len(HASHES):
            raise ValueError("no index")
        entries += [entry for each in found for entry in each or ()]
    is_split = any(is_linked and not path for path, is_linked in entries)
    return list(dict.fromkeys(path for path, is_linked in entries if path and (is_linked or is_split)))


def _entries(data: bytes, length: int) -> list[tuple[bytes, bool]] | None:
    try:
        return _parsed(data, length)
    except (ValueError, IndexError):
        return None


def _parsed(data: bytes, length: int) -> list[tuple[bytes, bool]]:
    version, count = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    if data[:4] != b"DIRC" or not 2 <= version <= 4 or count > MAX_ENTRIES:
        raise ValueError("no index")
    entries: list[tuple[bytes, bool]] = []
    at, path = 12, b""
    for _ in range(count):
        name = at + length + NAME_AFTER
        name += 2 if data[name - 2] & 0x40 else 0  # more flags
        kept = 0
        if version == 4:  # how much of the path before it does not belong to this one
            cut = data[name] & 0x7F
            while data[name] & 0x80:
                name += 1
                cut = (cut + 1 << 7) | data[name] & 0x7F
            name += 1
            kept = len(path) - cut
            if kept < 0:
                raise ValueError("no path")
        end = data.index(b"\0", name)
        path = path[:kept] + data[name:end]
        entries.append((path, data[at + MODE : at + MODE + 4] == GITLINK))
        at = end + 1 if version == 4 else at + (end - at + 8) // 8 * 8
    if at > len(data) - length:
        raise ValueError("no end")
    return entries
