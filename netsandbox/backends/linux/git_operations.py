"""Operations of git that are not finished (a rebase, a cherry-pick), before and after a session.

The host goes on with them later. So what a session added to them, and git would run, is taken back when the session has
ended (`policy.git_operations`): the file keeps the rest, and what was there is beside it. Whatever is not a plain file
or folder that we can read is put aside as a whole.
"""

from __future__ import annotations

import os
import stat

from netsandbox.backends.linux.git_copies import read_file, unlock
from netsandbox.backends.linux.private_folders import move_aside, open_folder
from netsandbox.paths import short
from netsandbox.policy.git_operations import FOLDERS, OBEYED, vetted
from netsandbox.runtime.private_file import write_new
from netsandbox.text import few, single_line

MAX_FILE = 16 << 20  # bytes; a rebase of a hundred thousand commits


def contents(folder: str) -> dict[str, bytes]:
    """The files of operations in the git directory *folder* that can name a program."""
    found = {}
    for path in [f"{folder}/{operation}/{name}" for operation in FOLDERS for name in OBEYED]:
        try:
            found[path] = read_file(path, most=MAX_FILE)
        except OSError:  # it is missing, or nothing that could stay as it is
            continue
    return found


def settle(folder: str, known: dict[str, bytes]) -> list[str]:
    """Take back what a session added to the operations in the git directory *folder*; lines for the user."""
    lines: list[str] = []
    for path in [f"{folder}/{operation}" for operation in FOLDERS]:
        try:
            unlock(folder)
            lines += _settle_folder(path, known)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            lines.append(_set_aside(path, error.strerror))
    return lines


def _settle_folder(path: str, known: dict[str, bytes]) -> list[str]:
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        return [_set_aside(path, "it is not a folder")]
    unlock(path)
    here = open_folder(path)
    try:
        return [line for name in OBEYED for line in _settle_file(path, name, here, known.get(f"{path}/{name}"))]
    finally:
        os.close(here)


def _settle_file(path: str, name: str, here: int, known: bytes | None) -> list[str]:
    try:
        content, taken = vetted(name, known, read_file(name, here, MAX_FILE))
    except FileNotFoundError:
        return []
    except OSError as error:  # a link, a folder, too large, or without rights
        content, taken = known, [error.strerror or "it cannot be read"]
    if not taken:
        return []
    kept = move_aside(name, here)
    if content is not None:
        write_new(name, content, 0o644, here)
    return [
        f"{single_line(short(path))}/{name} lost what the session added and git would run:"
        f" {few(single_line(each, 100) for each in taken)}; {kept} beside it has that"
    ]


def _set_aside(path: str, why: str | None) -> str:
    shown = single_line(short(path))
    try:
        above = open_folder(os.path.dirname(path))
        try:
            name = move_aside(os.path.basename(path), above)
        finally:
            os.close(above)
    except OSError as error:
        return f"{shown} cannot be looked at ({why}) nor renamed ({error.strerror}); remove it before you use git there"
    return f"{shown} cannot be looked at ({why}), so it is {name} now and git ignores it"
