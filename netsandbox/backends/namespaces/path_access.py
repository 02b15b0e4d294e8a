"""Whether a session may read and write a path, looked up as for a session that starts now, for `netsandbox explain`."""

from __future__ import annotations

import os

from netsandbox.backends.linux.file_view import file_view
from netsandbox.backends.namespaces.planned_view import PlannedView
from netsandbox.frozen import copy_with, frozen
from netsandbox.paths import home
from netsandbox.policy.file_denials import DenyRules
from netsandbox.policy.file_rules import CHANGE, PROJECT, READ, is_within
from netsandbox.policy.shown_files import TEMPORARY
from netsandbox.runtime.protection import hidden_homes, own_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from netsandbox.backends.linux.session_root import Entry
    from netsandbox.policy.file_rules import FileRules

PRIVATE = "the home inside is private: it has toolchains and plain settings of yours, and what sessions wrote there"
ABSENT = "it is not there: a session sees the system, toolchains, its project and what a rule names"
OWN = "the session has a folder of its own there, without the files of this machine"
HIDDEN = "it is hidden from sessions"
CACHE = "it is in a cache: a session reads yours, and changes a copy"
PROTECTED = "programs of this machine obey it, so a session may not change it"
GIT_COPY = "a session changes a copy; its remotes and branches are taken over at the end"
SHOWN_ONLY = "it is shown read-only"
WRITABLE = "a session may write it"


@frozen
class PathAccess:
    """What a session may do with a path, and why. `rule`: the rule of the user that denies it."""

    reads: bool
    writes: bool
    why: str
    rule: str | None = None


class _View(PlannedView):
    """Without what `path_access` answers for by itself."""

    def _repositories(self) -> None:
        pass


def path_access(rules: FileRules, environment: Mapping[bytes, bytes], working: str | None, path: str) -> PathAccess:
    """*path* is absolute; links are followed as on the host."""
    real = os.path.realpath(path)
    found = _access_to(real, rules, environment, working)
    denies = DenyRules(rules, os.path.realpath(home()), os.path.realpath)
    rule = denies.text_for(real, READ)
    if rule is not None and not found.reads:
        return copy_with(found, why=f"{rule} hides it", rule=rule)
    rule = denies.text_for(real, CHANGE)
    if rule is not None and found.reads and not found.writes:
        return copy_with(found, why=f"{rule} keeps it as it is", rule=rule)
    return found


def _access_to(real: str, rules: FileRules, environment: Mapping[bytes, bytes], working: str | None) -> PathAccess:
    if rules.mode != PROJECT:
        return _open_access(rules, environment, real)
    written = [os.path.realpath(rule.path) for rule in rules.allow_write]
    for cache in (*rules.caches, *rules.copies):
        if is_within(real, os.path.realpath(cache.path)) and not any(is_within(real, path) for path in written):
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
    if entry.writable and "/.git/" not in f"{entry.source}/":  # a rule for a path in it opens it
        git, _, name = path.partition("/.git/")
        if name and os.path.exists(f"{git}/.git"):
            if name == "config":
                return PathAccess(reads=True, writes=True, why=GIT_COPY)
            if name == "commondir" or is_within(name, "hooks"):
                return PathAccess(reads=True, writes=False, why=PROTECTED)
    return PathAccess(reads=True, writes=entry.writable, why=WRITABLE if entry.writable else SHOWN_ONLY)


def _open_access(rules: FileRules, environment: Mapping[bytes, bytes], real: str) -> PathAccess:
    view = file_view(rules, environment)
    if any(is_within(real, each) for each in (*view.folders, *view.files, *hidden_homes())):
        return PathAccess(reads=False, writes=False, why=HIDDEN)
    writes = view.writable is None or any(is_within(real, each) for each in view.writable)
    return PathAccess(reads=True, writes=writes, why=WRITABLE if writes else SHOWN_ONLY)
