"""Takes out of a project what a session made by names that programs of the host obey, before the user's prompt is back.

A name such as `.vscode` that exists is mounted read-only. One that is missing cannot be, so a session can make it. When
the session has ended, it is moved aside, copied into an overlay of ours (`kept_overlays`) and removed. `netsandbox
changes` shows it there, and `apply` puts it in place if the user names it.

The session made it, and other programs run: no link is followed, and a link on the way is what is taken. Only a copy is
kept, since a later session could write the file by a second name. What is too large for a copy keeps its other name.
"""

from __future__ import annotations

import os
import stat
from errno import EFBIG

from netsandbox.backends.linux.kept_overlays import KeptOverlays
from netsandbox.backends.linux.private_folders import (
    FOLDER,
    ON_THE_WAY,
    READ,
    move_aside,
    open_folder,
    remove_all,
    remove_tree,
)
from netsandbox.errors import NetsandboxError
from netsandbox.paths import short
from netsandbox.runtime.private_file import write_new
from netsandbox.text import few, shell_quoted, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from netsandbox.backends.linux.kept_overlays import HeldOverlay

MAX_BYTES, MAX_ENTRIES, MAX_DEPTH = 16 << 20, 4096, 64  # of what is kept by one name
MAX_NAMES = 100  # overlays of projects with the same name


def hold_back(missing: Mapping[str, str], state: str) -> list[str]:
    """Take away what exists of *missing*: paths, each with a folder around it. Returns lines for the user."""
    there: dict[str, list[str]] = {}
    for path, folder in missing.items():
        if is_there(path):
            there.setdefault(folder, []).append(path)
    lines = []
    for folder, paths in there.items():
        held = HeldFolder(folder, state)
        for path in paths:
            held.take(path)
        lines += held.finish("kept out of {folder}, where programs of the host would obey {them}", "")
    return lines


def is_there(path: str) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # a folder on the way is closed, or a link leads in a circle
        return True
    return True


class HeldFolder:
    """What is kept of one folder."""

    def __init__(self, folder: str, state: str) -> None:
        self._folder, self._state = folder, state
        self._overlay: HeldOverlay | None = None
        self._kept: list[str] = []
        self._lines: list[str] = []
        self._bytes, self._entries = MAX_BYTES, MAX_ENTRIES

    def take(self, path: str) -> None:
        inner = path[len(self._folder) + 1 :]
        try:
            top = _open_top(self._folder)
            try:
                here, inner = _found(top, inner)
            finally:
                os.close(top)
            try:
                self._keep(here, move_aside(os.path.basename(inner), here), inner)
            finally:
                os.close(here)
        except FileNotFoundError:  # it went with a link that was taken before
            return
        except OSError as error:
            shown = single_line(inner, 200)
            self._lines.append(
                f"{shown} is new and could not be taken away ({error.strerror}): remove it before a program obeys it"
            )

    def _keep(self, here: int, aside: str, inner: str) -> None:
        """Copy it into the overlay. If that fails, it stays, by the name that nothing obeys."""
        try:
            overlay = self._overlay = self._overlay or self._begin()
            self._write(here, aside, overlay.overlay.data, inner)
            if os.path.lexists(f"{overlay.overlay.data}/{inner}"):
                self._kept.append(inner)
            else:
                self._lines.append(f"{single_line(inner, 200)} is new and a pipe, socket or device, so it is removed")
            remove_tree(f"{self._folder}/{os.path.join(os.path.dirname(inner), aside)}")
        except (OSError, RecursionError, NetsandboxError) as error:
            shown, why = single_line(inner, 200), getattr(error, "strerror", None) or str(error)
            self._lines.append(
                f"{shown} is new and could not be kept ({single_line(why)}), so it is"
                f" {single_line(os.path.join(os.path.dirname(inner), aside), 200)} now; look before you rename it back"
            )

    def _write(self, here: int, aside: str, data: str, inner: str) -> None:
        self._bytes, self._entries = MAX_BYTES, MAX_ENTRIES
        target, name = _made_folders(data, os.path.dirname(inner), self._folder), os.path.basename(inner)
        try:
            remove_all(name, target)  # of an earlier session
            self._copy(here, aside, target, name, 0)
        except BaseException:
            remove_all(name, target)
            raise
        finally:
            os.close(target)

    def _begin(self) -> HeldOverlay:
        kept = KeptOverlays(self._state)
        base = "".join(char if char.isascii() and char.isalnum() else "-" for char in os.path.basename(self._folder))
        for number in range(1, MAX_NAMES):
            name = f"{base.strip('-').lower()[:30] or 'project'}-held{f'-{number}' if number > 1 else ''}"
            try:
                return kept.begin(name, self._folder)
            except NetsandboxError:  # it keeps changes of another folder, or a session uses it
                if number == MAX_NAMES - 1:
                    raise
        raise AssertionError

    def _copy(self, source: int, name: str, target: int, new: str, depth: int) -> None:
        """Sockets, pipes and devices are left out."""
        state = os.stat(name, dir_fd=source, follow_symlinks=False)
        self._entries -= 1
        if self._entries < 0 or depth > MAX_DEPTH:
            raise OSError(EFBIG, f"it has more than {MAX_ENTRIES} names, or folders deeper than {MAX_DEPTH}")
        if stat.S_ISLNK(state.st_mode):
            os.symlink(os.readlink(name, dir_fd=source), new, dir_fd=target)
        elif stat.S_ISREG(state.st_mode):
            write_new(new, self._content(source, name), stat.S_IMODE(state.st_mode) & 0o777 | 0o600, target)
        elif stat.S_ISDIR(state.st_mode):
            self._copy_folder(source, name, target, new, depth)

    def _copy_folder(self, source: int, name: str, target: int, new: str, depth: int) -> None:
        here = _opened(name, source)
        try:
            os.mkdir(new, 0o700, dir_fd=target)
            there = os.open(new, FOLDER, dir_fd=target)
            try:
                for each in os.listdir(f"/proc/self/fd/{here}"):
                    self._copy(here, each, there, each, depth + 1)
                os.fchmod(there, stat.S_IMODE(os.fstat(here).st_mode) & 0o777 | 0o700)
            finally:
                os.close(there)
        finally:
            os.close(here)

    def _content(self, folder: int, name: str) -> bytes:
        try:
            descriptor = os.open(name, READ, dir_fd=folder)
        except PermissionError:  # a command may have taken the right away
            _give_back(name, folder, 0o600)
            descriptor = os.open(name, READ, dir_fd=folder)
        with open(descriptor, "rb") as file:
            data = file.read(self._bytes + 1)
        self._bytes -= len(data)
        if self._bytes < 0:
            raise OSError(EFBIG, f"it has more than {MAX_BYTES >> 20} MB")
        return data

    def finish(self, what: str, option: str) -> list[str]:
        """Lines for the user: *what* was done, and with which *option* `apply` puts it in place."""
        if (held := self._overlay) is None:
            return self._lines
        try:
            if not os.listdir(held.overlay.data):
                held.remove()
            if not self._kept:
                return self._lines
            held.protect([f"{self._folder}/{inner}" for inner in self._kept])
        except NetsandboxError as error:
            self._lines.append(single_line(str(error)))
        finally:
            held.close()
        name, them = held.overlay.name, "it" if len(self._kept) == 1 else "them"
        what = what.format(folder=single_line(short(self._folder)), them=them)
        names = few(single_line(inner, 100) for inner in self._kept)
        plain = [inner for inner in self._kept if inner.isprintable()]  # of others `changes` lists the names
        puts = f"`netsandbox apply {name} {shell_quoted(plain[0]) if plain else 'PATH'}{option}` puts"
        shows = f"`netsandbox changes {name} --diff` shows {them}, {puts} {'it' if them == 'it' else 'one'} in place"
        return [*self._lines, f"{what}: {names}; {shows}"]


def _open_top(folder: str) -> int:
    try:
        return open_folder(folder)
    except PermissionError:
        above = open_folder(os.path.dirname(folder))
        try:
            return _opened(os.path.basename(folder), above)
        finally:
            os.close(above)


def _opened(name: str, above: int) -> int:
    """A folder by its name. A command may have taken the right away to look into it or to change it."""
    here = os.open(name, ON_THE_WAY, dir_fd=above)
    if os.fstat(here).st_mode & stat.S_IRWXU != stat.S_IRWXU:
        _give_back(name, above, stat.S_IRWXU)
    return here


def _give_back(name: str, above: int, rights: int) -> None:
    here = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    try:
        os.chmod(f"/proc/self/fd/{here}", stat.S_IMODE(os.fstat(here).st_mode) | rights)
    finally:
        os.close(here)


def _found(top: int, inner: str) -> tuple[int, str]:
    """The folder of what is at *inner*, or of the first link on the way, and the path of that."""
    here = os.dup(top)
    names = inner.split("/")
    try:
        for number, name in enumerate(names, 1):
            mode = os.stat(name, dir_fd=here, follow_symlinks=False).st_mode
            if number == len(names) or stat.S_ISLNK(mode):
                break
            above, here = here, _opened(name, here)
            os.close(above)
    except BaseException:
        os.close(here)
        raise
    return here, "/".join(names[:number])


def _made_folders(data: str, inner: str, host: str) -> int:
    """The folder *inner* of an upper layer, with the rights that the host's has. What an earlier session left in its
    way goes."""
    here = open_folder(data)
    for name in filter(None, inner.split("/")):
        host = f"{host}/{name}"
        above = here
        try:
            try:
                here = os.open(name, FOLDER, dir_fd=above)
            except OSError:  # it is missing, or a link or a file
                remove_all(name, above)
                os.mkdir(name, dir_fd=above)
                here = os.open(name, FOLDER, dir_fd=above)
            os.fchmod(here, stat.S_IMODE(os.lstat(host).st_mode) & 0o777 | 0o700)
        finally:
            os.close(above)
    return here
