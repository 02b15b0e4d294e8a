"""The rules for files as a session enforces them: wildcards are expanded on this host, and a deny wins over an allow.

Both systems use it, for the command line and the Python API. What it takes away is returned too, for notices.
"""

from __future__ import annotations

import os
import stat

from netsandbox.errors import UsageError
from netsandbox.frozen import copy_with, frozen
from netsandbox.policy.file_rules import FileRules, PathRule, is_within
from netsandbox.policy.path_patterns import MAX_MATCHES, TooMany, expand
from netsandbox.runtime.real_paths import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

ALLOWS = ("allow_read", "allow_write", "caches", "copies", "allow_execute")
DENIES = ("deny_read", "deny_write")


@frozen
class Overruled:
    """A rule that allows, and the rule that denies the same path or a folder above it."""

    allow: PathRule
    deny: PathRule


@frozen
class EffectiveRules:
    """`unmatched`: the rules with wildcards that match nothing, each with the name of its list."""

    rules: FileRules
    unmatched: tuple[tuple[str, PathRule], ...] = ()
    overruled: tuple[Overruled, ...] = ()


def effective(rules: FileRules) -> EffectiveRules:
    lists: dict[str, tuple[PathRule, ...]] = {}
    unmatched: list[tuple[str, PathRule]] = []
    for name in (*ALLOWS, *DENIES):
        found: list[PathRule] = []
        for rule in getattr(rules, name):
            expanded = [rule] if not rule.wild else _expanded(rule, denies=name in DENIES)
            found += expanded
            unmatched += [] if expanded else [(name, rule)]
        lists[name] = tuple(found)
    overruled = _apply_denies(lists)
    return EffectiveRules(copy_with(rules, **lists), tuple(unmatched), tuple(overruled))


def _expanded(rule: PathRule, *, denies: bool) -> list[PathRule]:
    try:
        paths = expand(rule, lambda folder: _names_in(folder, links=denies or len(folder) <= rule.wild), dots=denies)
    except TooMany:
        raise UsageError(
            f"{rule.origin}: {rule.path!a} matches more than {MAX_MATCHES} paths, or too many names to look at;"
            " name the folder above them instead"
        ) from None
    kept = [path for path in paths if _is_taken(path, rule, denies=denies)]
    return [PathRule(path, rule.origin) for path in kept]


def _names_in(folder: str, *, links: bool) -> Iterable[str]:
    """The names in *folder*. Without *links* a folder that a link leads to has none: a command could have made it."""
    return () if not links and os.path.islink(folder) else names_in(folder)


def _is_taken(path: str, rule: PathRule, *, denies: bool) -> bool:
    """Whether a match exists. A rule that allows takes no link after its first wildcard: a command could have made it
    lead anywhere. With a slash at the end of the rule, only folders count."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return denies and os.path.lexists(path)
    if rule.folder and not stat.S_ISDIR(mode):
        return False
    return denies or not any(os.path.islink(above) for above in _from(path, rule.wild))


def _from(path: str, start: int) -> Iterable[str]:
    """*path* and the folders above it that are longer than *start*."""
    while len(path) > max(start, 1):
        yield path
        path = path.rpartition("/")[0]


def _apply_denies(lists: dict[str, tuple[PathRule, ...]]) -> list[Overruled]:
    """Take away what a deny closes. What may only not be written is shown; a cache with a hidden part is left out."""
    hidden = [(rule, os.path.realpath(rule.path)) for rule in lists["deny_read"]]
    kept = [(rule, os.path.realpath(rule.path)) for rule in lists["deny_write"]]
    if not hidden and not kept:
        return []
    overruled: list[Overruled] = []

    def split(rules: Iterable[PathRule], denies: list[tuple[PathRule, str]]) -> tuple[list[PathRule], list[PathRule]]:
        left: list[PathRule] = []
        closed: list[PathRule] = []
        for rule in rules:
            real = os.path.realpath(rule.path)
            deny = next((deny for deny, path in denies if is_within(real, path)), None)
            (left if deny is None else closed).append(rule)
            if deny is not None:
                overruled.append(Overruled(rule, deny))
        return left, closed

    read, _ = split(lists["allow_read"], hidden)
    write, _ = split(lists["allow_write"], hidden)
    write, shown = split(write, kept)
    lists["allow_read"] = (*read, *shown)
    lists["allow_write"] = tuple(write)
    for name in ("caches", "copies"):
        lists[name] = tuple(rule for rule in lists[name] if not _touches(os.path.realpath(rule.path), hidden))
    return overruled


def _touches(path: str, denies: Iterable[tuple[PathRule, str]]) -> bool:
    return any(is_within(path, real) or is_within(real, path) for _, real in denies)
