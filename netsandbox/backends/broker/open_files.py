"""What a session in the modes `readable` and `open` may read and write where nothing can be mounted.

The paths are those of `file_view`. What is hidden or kept there is carved out (`carving`), so that the folders above it
take no new names. In the folder that the command works in, and in those that a rule opens, that would be of no use: a
deny there is an error, and so is a file of netsandbox. A temporary folder that holds such a file is replaced by a
private one.
"""

from __future__ import annotations

import os

from netsandbox.backends.broker.carving import READ, WRITE, Permits, carve
from netsandbox.backends.broker.landlock_view import OTHER_BACKEND, entries, own_file_error, own_places
from netsandbox.backends.linux.file_view import TEMPORARY, always_writable, everywhere, file_view
from netsandbox.backends.linux.open_folders import second_name_notice
from netsandbox.errors import UsageError
from netsandbox.paths import short, working_folder
from netsandbox.policy.file_rules import OPEN, is_within, outermost
from netsandbox.text import few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from netsandbox.policy.file_rules import FileRules
    from netsandbox.runtime.protection import OwnPaths

DEVICES, PROCESSES, KERNEL = "/dev", "/proc", "/sys"  # with rules of their own


class OpenFiles:
    """*environment* is the command's. `replaced` tells whether the session needs a private temporary folder."""

    def __init__(self, rules: FileRules, environment: Mapping[bytes, bytes], own: OwnPaths, permits: Permits) -> None:
        self._rules = rules
        self._permits = permits
        self.notices: list[str] = []
        view = file_view(rules, environment)
        if text := second_name_notice(view):
            self.notices.append(text)
        ours = own_places((*own.hidden, *own.read_only))
        closed = everywhere(tuple(dict.fromkeys(map(os.path.realpath, own.hidden))))
        self._hidden = outermost((*closed, *view.folders, *view.files))
        self._kept = tuple(dict.fromkeys((*ours, *view.links, *view.read_only)))
        folders = always_writable(environment) if view.writable is None else view.writable
        written = [path for path in folders if not any(is_within(path, each) for each in (DEVICES, PROCESSES))]
        temporary = _temporary(environment)
        self.replaced = any(is_within(path, folder) for folder in temporary for path in ours)
        self._check(_needed(rules), ours)
        self._read()
        self._write(["/"] if rules.mode == OPEN else written, written)

    def _check(self, folders: tuple[str, ...], ours: tuple[str, ...]) -> None:
        for folder in folders:
            for path in ours:
                if is_within(path, folder):
                    raise own_file_error(path, folder)
            for rule in (*self._rules.deny_read, *self._rules.deny_write):
                if os.path.lexists(rule.path) and os.path.realpath(rule.path).startswith(f"{folder}/"):
                    raise UsageError(
                        f"{rule.origin}: {short(rule.path)} cannot be closed in {short(folder)}, which the session"
                        f" writes; leave it out, work in a folder beside it, or {OTHER_BACKEND}"
                    )

    def _read(self) -> None:
        self._add(READ, "/", (*self._hidden, DEVICES, PROCESSES))

    def _write(self, folders: list[str], written: list[str]) -> None:
        closed = (*self._hidden, *self._kept, DEVICES, PROCESSES, KERNEL)
        opened: list[str] = []
        for folder in folders:
            opened += self._add(WRITE, folder, closed)
        lost = [path for path in opened if any(is_within(path, folder) for folder in written)]
        if lost:
            self.notices.append(
                f"no new names can be made in {few(map(short, lost))}, since they hold something that is hidden or kept"
            )

    def _add(self, rights: int, top: str, closed: Iterable[str]) -> tuple[str, ...]:
        found = carve(top, tuple(closed), entries)
        self._permits.add(rights, *found.paths)
        if found.left_out:
            self.notices.append(
                f"too many files beside hidden ones: some of {few(map(short, found.left_out))} are closed"
            )
        return found.opened


def _needed(rules: FileRules) -> tuple[str, ...]:
    """The folders that are useless if no names can be made in them."""
    named = [rule.path for rule in rules.allow_write if os.path.lexists(rule.path)]
    return tuple(dict.fromkeys(map(os.path.realpath, (*filter(None, [working_folder()]), *named))))


def _temporary(environment: Mapping[bytes, bytes]) -> tuple[str, ...]:
    named = os.fsdecode(environment.get(b"TMPDIR", b""))
    return tuple(map(os.path.realpath, (*TEMPORARY, *([named] if named.startswith("/") else ()))))
