"""A folder of locally signed copies.

Rules: a folder is made under another name and renamed when it is complete, so a reader finds all of it or nothing. Its
name comes from the originals' paths, times and sizes, so a later launch checks file metadata alone. The content is not
checked: no session can write there (INV-8), and a program that can could write a record of it too.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

TRIES = 3  # attempts at a name that other sessions take and release meanwhile
PATIENCE = 60.0  # seconds for the signer
OLD = 30 * 86400.0  # seconds until a folder that no launch used is removed; a session may use it until then
DAY = 86400.0


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
    states = [(path, os.stat(path)) for path in originals]
    origins = repr([(path, found.st_size, found.st_mtime_ns) for path, found in states])
    return os.path.join(home, hashlib.sha256(os.fsencode(origins)).hexdigest()[:32])


def holds(folder: str, originals: Sequence[str]) -> bool:
    """Whether a signed copy of each exists. The folder's time is that of its last use, to the day."""
    try:
        for path in originals:
            found = os.lstat(os.path.join(folder, os.path.basename(path)))
            if found.st_mode != stat.S_IFREG | 0o700 or found.st_uid != os.geteuid():
                return False
        if os.stat(folder).st_mtime < time.time() - DAY:
            os.utime(folder)
    except OSError:
        return False
    return True


def make(folder: str, originals: Sequence[str], codesign: str) -> None:
    """Copy and sign. If another session made the folder meanwhile, that one is used."""
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
    """Remove folders that no launch used lately, and the remains of a killed launch."""
    import shutil

    for name in os.listdir(home):
        folder = os.path.join(home, name)
        try:
            if os.lstat(folder).st_mtime < time.time() - OLD:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # it was removed meanwhile
            continue
