"""Notes the host's files that a command changes and the secrets that it tries to open, for `netsandbox learn` only.

Every call that opens or changes a file by path is trapped here and always answered with CONTINUE. Nothing is decided,
so another thread that changes the path meanwhile gains nothing (attack 115): such a command only falsifies the log
about itself, and the policy proposed from it gets worse. Mounts decide what may be read and written, as in every
session.

A path is resolved in the session's root and mounts, as the kernel will do. Attempts count, not their results. Paths
where every session may write are not noted, and paths through /proc or /dev are not followed. A file system that hangs
blocks the whole session, as it blocks the command.
"""

from __future__ import annotations

import errno
import os
import stat

from netsandbox.backends.namespaces import remote_process
from netsandbox.backends.namespaces.file_calls import (
    AT_FDCWD,
    AT_SYMLINK_NOFOLLOW,
    CHANGE,
    CREATED,
    FOLDER,
    OPEN,
    READ,
    file_calls,
    follows,
    opened,
)
from netsandbox.backends.namespaces.path_notes import PathNotes
from netsandbox.backends.namespaces.procfs import process_of
from netsandbox.policy.file_rules import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.audit.log import AuditLog
    from netsandbox.backends.namespaces.file_calls import FileCall, PathArgument
    from netsandbox.backends.namespaces.seccomp_notify import Listener, TrappedCall
    from netsandbox.backends.namespaces.watched_paths import WatchedPaths

MAX_REFUSED = 200  # notes of paths that the user may not write either
MAX_LINKS = 8  # in a chain whose last link leads to nothing
MAX_KNOWN = 1 << 16  # paths that were read and are no secrets
MAX_KNOWN_PATH = 256  # bytes of such a path; the command chooses what we keep
# The call will fail for the same reason, or its caller is gone.
FAILS = (errno.EFAULT, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.ESRCH)


class FileWatch:
    """One per session."""

    def __init__(self, listener: Listener, log: AuditLog, places: WatchedPaths) -> None:
        self._listener = listener
        self._log = log
        self._places = places
        self._calls = file_calls(os.uname().machine)
        self._root: int | None = None  # the first caller's root, which all callers share
        self._notes = {True: PathNotes(places.limits), False: PathNotes(places.limits, MAX_REFUSED)}
        self._secrets: set[tuple[str, str]] = set()
        self._known: set[bytes] = set()
        self._unknown = 0

    def takes(self, call: TrappedCall) -> bool:
        return call.number in self._calls

    def serve(self, call: TrappedCall) -> None:
        try:
            made = self._calls[call.number]
            for named in made.paths:
                self._look(call, made, named)
        finally:
            self._listener.let_go_on(call)

    def close(self) -> None:
        """Record how many notes were left out."""
        if self._root is not None:
            os.close(self._root)
        for notes in self._notes.values():
            if notes.left_out:
                self._log.write("file", door="seccomp", count=notes.left_out, detail="more paths than are listed")
        if self._unknown:
            self._log.write("file", door="seccomp", count=self._unknown, detail="the path could not be found out")

    def _look(self, call: TrappedCall, made: FileCall, named: PathArgument) -> None:
        try:
            if self._root is None:
                self._root = remote_process.open_root(call.pid)
            path = self._path(call, named)
            flags = _flags(call, made, named)
        except OSError as error:
            if error.errno == errno.EACCES or error.errno not in FAILS:
                self._unknown += 1
            return
        if path is None or (path in self._known and named.does == OPEN and _only_reads(flags)):
            return
        if not self._listener.is_valid(call):  # otherwise the path may belong to another process
            return
        follow = follows(flags) if named.does == OPEN else named.follows and not flags & AT_SYMLINK_NOFOLLOW
        try:
            real, mode = _resolved(self._root, path, 0 if follow else os.O_NOFOLLOW)
        except OSError as error:
            self._unknown += error.errno not in FAILS
            return
        self._found(call, made.name, path, os.fsdecode(real), _done(named.does, flags, mode))

    def _path(self, call: TrappedCall, named: PathArgument) -> bytes | None:
        """The absolute path that the caller means; None if there is none or it is not followed."""
        address = call.arguments[named.path]
        path = remote_process.path_text(call.pid, address) if address else b""
        if not path:  # a call on a descriptor, or one that fails
            return None
        if not path.startswith(b"/"):
            number = AT_FDCWD if named.folder is None else call.arguments[named.folder] & 0xFFFFFFFF
            folder = _folder(call.pid, "cwd" if number == AT_FDCWD else f"fd/{number}")
            if not folder.startswith(b"/") or folder.endswith(b" (deleted)"):
                return None
            path = folder + b"/" + path
            if len(path) >= remote_process.PATH_MAX:
                raise _too_deep()
        return None if path.startswith((b"/proc/", b"/dev/")) else path

    def _found(self, call: TrappedCall, name: str, path: bytes, real: str, done: str | None) -> None:
        place = next((place for place in self._places.hidden if is_within(real, place)), None)
        if place is not None:
            if done is not None and (place, done) not in self._secrets:
                self._secrets.add((place, done))
                self._write(call, name, real, done, place=place)
        elif done == READ:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            if len(path) <= MAX_KNOWN_PATH:
                self._known.add(path)
        elif done is not None and not any(is_within(real, folder) for folder in self._places.writable):
            permitted = _permitted(real)
            note = self._notes[permitted].add(real, done)
            if note is not None:
                self._write(call, name, *note, permitted=None if permitted else False)

    def _write(self, call: TrappedCall, name: str, path: str, done: str, **more: object) -> None:
        try:
            pid = process_of(call.pid)
        except OSError:  # the caller was killed
            pid = call.pid
        exe = self._listener.exe_of(call)
        self._log.write("file", door="seccomp", pid=pid, exe=exe, operation=done, path=path, call=name, **more)


def _folder(pid: int, where: str) -> bytes:
    try:
        return os.readlink(f"/proc/{pid}/{where}".encode())
    except OSError as error:
        raise (_too_deep() if error.errno == errno.ENAMETOOLONG else error) from None


def _too_deep() -> OSError:
    """The kernel can go there step by step, but not by one path."""
    return OSError(errno.EOVERFLOW, os.strerror(errno.EOVERFLOW))


def _resolved(root: int, path: bytes, flags: int) -> tuple[bytes, int]:
    """Where *path* leads, and the mode of the file; 0 if nothing exists there yet, even if the folders above do."""
    path = path.rstrip(b"/") or b"/"
    for _ in range(MAX_LINKS):
        try:
            return _seen(remote_process.open_in(root, path, flags))
        except FileNotFoundError:
            target = None if flags else _dangling(root, path)
        if target is None:
            return _missing(root, path), 0
        path = target
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _seen(fd: int) -> tuple[bytes, int]:
    try:
        return os.readlink(b"/proc/self/fd/%d" % fd), os.fstat(fd).st_mode
    finally:
        os.close(fd)


def _dangling(root: int, path: bytes) -> bytes | None:
    """The target of a link to nothing; an open that creates makes the file there."""
    try:
        fd = remote_process.open_in(root, path, os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        target = os.readlink(b"", dir_fd=fd)
    finally:
        os.close(fd)
    return target if target.startswith(b"/") else path.rpartition(b"/")[0] + b"/" + target


def _missing(root: int, path: bytes) -> bytes:
    """The nearest existing folder above, and the names that are missing."""
    names: list[bytes] = []
    while True:
        path, _, name = path.rpartition(b"/")
        if name == b"..":  # the parent of a missing folder
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        names += [name] if name not in (b"", b".") else []
        try:
            found, _ = _seen(remote_process.open_in(root, path or b"/"))
        except FileNotFoundError:
            continue
        return b"/".join((found.rstrip(b"/"), *reversed(names)))


def _flags(call: TrappedCall, made: FileCall, named: PathArgument) -> int:
    if made.name == "creat":
        return CREATED
    if named.flags is None:
        return 0
    if made.name == "openat2":
        return int.from_bytes(remote_process.memory(call.pid, call.arguments[named.flags], 8), "little")
    return int(call.arguments[named.flags])


def _only_reads(flags: int) -> bool:
    return opened(flags, exists=True, is_folder=False) == READ and not flags & os.O_CREAT


def _done(does: str, flags: int, mode: int) -> str | None:
    is_folder = stat.S_ISDIR(mode)
    if does == OPEN:
        return opened(flags, exists=bool(mode), is_folder=is_folder)
    if does == FOLDER:
        return None if mode else FOLDER  # an existing folder stays unchanged
    if does == CHANGE:
        return None if not mode else FOLDER if is_folder else CHANGE
    return does


def _permitted(path: str) -> bool:
    """Whether the user could do it outside, judged by the nearest existing path."""
    while not os.path.lexists(path) and path != "/":
        path = os.path.dirname(path)
    return os.access(path, os.W_OK)
