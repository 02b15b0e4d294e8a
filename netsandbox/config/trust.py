"""The files that the user trusts, each with one content.

The author of a project, or any command that ran in it, may have written its file. So the file widens the policy only
after the user has seen its content; a changed file needs trust again. The file is read once: the checked content is
the content that is used. Records are in the state home, which no session can see (INV-8).
"""

from __future__ import annotations

import os

from netsandbox.config.paths import trust_folder
from netsandbox.errors import HostError
from netsandbox.runtime.private_file import digest, replace


def named_host(pattern: str) -> bytes:
    """Instead of a content: that a tool's file names this host, whatever else is in it."""
    return b"\0host " + pattern.encode("utf-8", "surrogateescape")


_FOLDER = b"\0folder"  # instead of a content


def is_trusted(path: str, data: bytes) -> bool:
    """Whether the user trusts *data* at *path*; every failure means no (INV-1)."""
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


def trust_folder_at(path: str, since: int) -> None:
    """Trust what was in the folder at the time *since*, in nanoseconds, and what is put there until a session that
    began later can write there."""
    trust(path, _FOLDER)
    os.utime(_record(path, _FOLDER), ns=(since, since))


def trusted_since(path: str) -> int:
    """When the user trusted the folder *path*, or one above it, for the last time, in nanoseconds; 0 for never."""
    latest = 0
    while path != "/":
        record = _record(path, _FOLDER)
        try:
            with open(record, "rb") as file:
                if file.read() == _content(path):
                    latest = max(latest, os.fstat(file.fileno()).st_mtime_ns)
        except OSError:
            pass
        path = os.path.dirname(path)
    return latest


def distrust(path: str) -> int:
    """Remove the trust in every content at *path*; how many there were."""
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
    """The files of which some content is trusted."""
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
    """The name is a digest of place and content together, so neither can be exchanged."""
    where = os.fsencode(_place(path))
    return os.path.join(trust_folder(), digest(b"%d:%s%s" % (len(where), where, data)))


def _content(path: str) -> bytes:
    return os.fsencode(_place(path)) + b"\n"


def _place(path: str) -> str:
    """The file's own place: a link to a file that is trusted elsewhere is not trusted."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)
