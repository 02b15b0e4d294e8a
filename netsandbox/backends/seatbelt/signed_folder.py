"""A folder of locally signed copies, with a record of their originals and of the result.

Rules: a folder is made under another name and renamed when it is complete, so a reader finds all of it or nothing. Its
name comes from the originals' paths, times and sizes, so a later launch checks file metadata and reads only the record.
Copies that differ from the record are read, and made again if their content changed. Nothing is trusted that others
could have written.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

RECORD = "record.json"
TRIES = 3  # attempts at a name that other sessions take and release meanwhile
PATIENCE = 60.0  # seconds for the signer
OLD = 30 * 86400.0  # seconds until a folder without its originals is removed; a session may use it until then
Mark = list[object]


class CannotSign(Exception):
    """Why there are no signed copies."""


def own_folder(home: str) -> None:
    """Make *home*, which holds the folders, and check that only this user can write there: programs run from it."""
    os.makedirs(home, 0o700, exist_ok=True)
    found = os.lstat(home)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise CannotSign(f"{home} can be written by others, or is another's")


def folder_of(home: str, originals: Sequence[str]) -> str:
    """The folder for *originals* as they are now."""
    origins = json.dumps([_origin(path) for path in originals])
    return os.path.join(home, hashlib.sha256(origins.encode()).hexdigest()[:32])


def holds(folder: str, originals: Sequence[str]) -> bool:
    """Whether an unchanged signed copy of each exists."""
    names = [os.path.basename(path) for path in originals]
    try:
        record = _read(folder)
        marks, digests = record["marks"], record["digests"]
        seen = {name: _mark(os.path.join(folder, name)) for name in names}
        if seen == marks:
            return True
        if any(
            seen[name][0] != marks[name][0] or _digest(os.path.join(folder, name)) != digests[name] for name in names
        ):
            return False
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return False
    _renew(folder, {**record, "marks": seen})  # a backup or a tag changed metadata only; avoid another read
    return True


def make(folder: str, originals: Sequence[str], codesign: str) -> None:
    """Copy, sign and record. If another session made the folder meanwhile, that one is used."""
    import shutil
    import tempfile

    home = os.path.dirname(folder)
    _sweep(home)
    scratch = tempfile.mkdtemp(prefix=".", dir=home)
    try:
        copies = [shutil.copyfile(path, os.path.join(scratch, os.path.basename(path))) for path in originals]
        for copy in copies:
            os.chmod(copy, 0o700)
        if folder_of(home, originals) != folder:
            raise CannotSign("netsandbox is being installed; try again")
        _sign(codesign, copies)
        record: dict[str, Any] = {
            "originals": [_origin(path) for path in originals],
            "marks": {os.path.basename(copy): _mark(copy) for copy in copies},
            "digests": {os.path.basename(copy): _digest(copy) for copy in copies},
        }
        _write(os.path.join(scratch, RECORD), record)
        _publish(scratch, folder, originals)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _sign(codesign: str, copies: Sequence[str]) -> None:
    import subprocess

    command = [codesign, "--force", "--sign", "-", *copies]
    try:
        subprocess.run(
            command,
            env={},  # one of the user's variables names a program that it would run
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or [f"status {error.returncode}"]
        raise CannotSign(f"{codesign} says: {lines[-1]}") from None
    except subprocess.TimeoutExpired:
        raise CannotSign(f"{codesign} does not answer") from None


def _publish(scratch: str, folder: str, originals: Sequence[str]) -> None:
    import shutil

    for _ in range(TRIES):
        try:
            os.rename(scratch, folder)
            return
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
        if holds(folder, originals):
            return
        previous = f"{scratch}-previous"
        try:
            os.rename(folder, previous)
        except FileNotFoundError:  # another session removed it first
            continue
        shutil.rmtree(previous, ignore_errors=True)
    raise CannotSign(f"{folder} changes all the time")


def _sweep(home: str) -> None:
    """Remove folders whose originals were upgraded or removed, and the remains of a killed launch."""
    import shutil

    for name in os.listdir(home):
        folder = os.path.join(home, name)
        try:
            if os.lstat(folder).st_mtime < time.time() - OLD and not _is_current(folder):
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # it was removed meanwhile
            continue


def _is_current(folder: str) -> bool:
    try:
        return all(_origin(path) == [path, *known] for path, *known in _read(folder)["originals"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _origin(path: str) -> Mark:
    found = os.stat(path)
    return [path, found.st_size, found.st_mtime_ns]


def _mark(path: str) -> Mark:
    """Values that change with every change of a file; its owner cannot set the last two."""
    found = os.lstat(path)
    return [found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def _read(folder: str) -> dict[str, Any]:
    with open(os.path.join(folder, RECORD), "rb") as file:
        found: dict[str, Any] = json.load(file)
    return found


def _write(path: str, record: dict[str, Any]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(record, file)


def _renew(folder: str, record: dict[str, Any]) -> None:
    unfinished = os.path.join(folder, f"{RECORD}.{os.getpid()}")
    try:
        _write(unfinished, record)
        os.replace(unfinished, os.path.join(folder, RECORD))
    except OSError:  # only speed is lost
        pass
