"""Whether a session may read and write a path, looked up as for a session that starts now, for `netsandbox explain`."""

from __future__ import annotations

import os

from netsandbox.backends.namespaces.file_view import file_view
from netsandbox.backends.namespaces.planned_view import PlannedView
from netsandbox.frozen import frozen
from netsandbox.policy.file_rules import PROJECT, is_within
from netsandbox.policy.shown_files import TEMPORARY
from netsandbox.runtime.protection import hidden_homes, own_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from netsandbox.backends.namespaces.session_root import Entry
    from netsandbox.policy.file_rules import FileRules

PRIVATE = "the home inside is private: it has toolchains and plain settings of yours, and what sessions wrote there"
ABSENT = "it is not there: a session sees the system, toolchains, its project and what a rule names"
OWN = "the session has a folder of its own there, without the files of this machine"
HIDDEN = "it is hidden: it appears empty"
CACHE = "it is in a cache: a session reads yours, and changes a copy"
PROTECTED = "programs of this machine obey it, so a session may not change it"
SHOWN_ONLY = "it is shown read-only"
WRITABLE = "a session may write it"


@frozen
class PathAccess:
    """What a session may do with a path, and why."""

    reads: bool
    writes: bool
    why: str


class _View(PlannedView):
    """Without the parts that `path_access` answers for by itself."""

    def _repositories(self) -> None:
        pass

    def _caches(self) -> None:
        pass


def path_access(rules: FileRules, environment: Mapping[bytes, bytes], working: str | None, path: str) -> PathAccess:
    """*path* is absolute; links are followed as on the host."""
    real = os.path.realpath(path)
    if rules.mode != PROJECT:
        return _open_access(rules, environment, real)
    for cache in rules.caches:
        if is_within(real, os.path.realpath(cache.path)):
            return PathAccess(reads=True, writes=True, why=CACHE)
    view = _View(rules, environment, working)
    entry = view.build("true", own_paths(), None).entry_of(real)
    return _access(entry, real, is_private=entry is not None and entry.source == view.folders.home)


def _access(entry: Entry | None, path: str, *, is_private: bool) -> PathAccess:
    if entry is None:
        return PathAccess(reads=False, writes=False, why=ABSENT)
    if is_private:
        return PathAccess(reads=False, writes=False, why=PRIVATE)
    if entry.kind != "show":
        is_temporary = any(is_within(path, each) for each in TEMPORARY)
        return PathAccess(reads=False, writes=False, why=OWN if is_temporary else ABSENT)
    if entry.upper == "ours":
        return PathAccess(reads=False, writes=False, why=HIDDEN)
    if entry.writable and _is_obeyed(path):
        return PathAccess(reads=True, writes=False, why=PROTECTED)
    return PathAccess(reads=True, writes=entry.writable, why=WRITABLE if entry.writable else SHOWN_ONLY)


def _is_obeyed(path: str) -> bool:
    return "/.git/hooks/" in f"{path}/" or path.endswith("/.git/config")


def _open_access(rules: FileRules, environment: Mapping[bytes, bytes], real: str) -> PathAccess:
    view = file_view(rules, environment)
    if any(is_within(real, each) for each in (*view.folders, *view.files, *hidden_homes())):
        return PathAccess(reads=False, writes=False, why=HIDDEN)
    writes = view.writable is None or any(is_within(real, each) for each in view.writable)
    return PathAccess(reads=True, writes=writes, why=WRITABLE if writes else SHOWN_ONLY)
