"""The files of projects that the user trusts, each with one content.

The author of a project wrote its file, and so may have every command that worked in it. So what the file opens counts
only after the user has seen it; a changed file is a new one. The content that is checked is the content that is used:
it is read once. Records are kept in the state home, which no session can see (INV-8).
"""

from __future__ import annotations

import os

from netsandbox.config.paths import trust_folder
from netsandbox.errors import HostError
from netsandbox.runtime.digest import digest
from netsandbox.runtime.private_file import replace


def is_trusted(path: str, data: bytes) -> bool:
    """Whether the user trusts *data* at *path*; anything unclear is a no (INV-1)."""
    try:
        with open(_record(path, data), "rb") as file:
            return file.read() == _content(path)
    except OSError:
        return False


def trust(path: str, data: bytes) -> None:
    place = _record(path, data)
    try:
        os.makedirs(os.path.dirname(place), 0o700, exist_ok=True)
        replace(place, _content(path))
    except OSError as error:
        raise HostError(f"cannot note that {path} is trusted: {error.strerror}; check {trust_folder()}") from None


def distrust(path: str) -> int:
    """Take back every yes to any content at *path*; how many there were."""
    wanted, forgotten = _content(path), 0
    for place in _records():
        try:
            with open(place, "rb") as file:
                if file.read() != wanted:
                    continue
            os.unlink(place)
        except OSError:
            continue
        forgotten += 1
    return forgotten


def trusted_paths() -> list[str]:
    """The files that are trusted in some version."""
    found: set[str] = set()
    for place in _records():
        try:
            with open(place, "rb") as file:
                found.add(os.fsdecode(file.read().rstrip(b"\n")))
        except OSError:
            continue
    return sorted(found)


def _records() -> list[str]:
    try:
        return [os.path.join(trust_folder(), name) for name in os.listdir(trust_folder())]
    except OSError:
        return []


def _record(path: str, data: bytes) -> str:
    """Named by place and content together, so that neither can be exchanged."""
    where = os.fsencode(_place(path))
    return os.path.join(trust_folder(), digest(b"%d:%s%s" % (len(where), where, data)))


def _content(path: str) -> bytes:
    return os.fsencode(_place(path)) + b"\n"


def _place(path: str) -> str:
    """The file's own place: a link to what was trusted elsewhere is not trusted here."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)
