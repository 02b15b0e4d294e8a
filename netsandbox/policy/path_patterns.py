"""Wildcards in the paths of rules: `*` and `?` stand for characters of one name. Pure; the caller lists folders.

A rule stands for what it matches when a session starts. In doubt it is closed: in a rule that allows, a wildcard does
not match a dot at the beginning of a name, as in a shell; in a rule that denies, it does.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from netsandbox.policy.file_rules import PathRule

MAX_MATCHES = 512  # of one rule; each is a mount
MAX_NAMES = 20_000  # that are compared for one rule


class TooMany(Exception):
    """The rule matches, or looks at, more than a session can be made with while somebody waits."""


def matches(name: str, pattern: str) -> bool:
    """Whether *pattern* matches all of *name*. The time is bounded by the product of their lengths."""
    at = place = 0
    star, resumed = -1, 0
    while at < len(name):
        if place < len(pattern) and pattern[place] == "*":
            star, resumed = place, at
            place += 1
        elif place < len(pattern) and pattern[place] in ("?", name[at]):
            at, place = at + 1, place + 1
        elif star >= 0:
            resumed += 1
            at, place = resumed, star + 1
        else:
            return False
    return not pattern[place:].strip("*")


def expand(rule: PathRule, names_in: Callable[[str], Iterable[str]], *, dots: bool) -> list[str]:
    """The paths that *rule* matches, in order. A name without a wildcard is appended unseen, so that the caller checks
    what exists. *names_in* lists a folder. *dots*: wildcards match a dot at the beginning."""
    folders = [rule.path[: rule.wild].rstrip("/")]
    looked = 0
    for part in rule.path[rule.wild :].strip("/").split("/"):
        if "*" not in part and "?" not in part:
            folders = [f"{folder}/{part}" for folder in folders]
            continue
        found: list[str] = []
        for folder in folders:
            for name in sorted(names_in(folder or "/")):
                looked += 1
                if looked > MAX_NAMES:
                    raise TooMany
                if (dots or part.startswith(".") or not name.startswith(".")) and matches(name, part):
                    found.append(f"{folder}/{name}")
        if len(found) > MAX_MATCHES:
            raise TooMany
        folders = found
    return folders
