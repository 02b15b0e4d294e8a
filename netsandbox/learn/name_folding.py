"""Turns used names into rules: each name, or a wildcard for many siblings. Pure.

A wildcard never covers a name under which strangers can register names, nor a denied name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from netsandbox.frozen import frozen
from netsandbox.policy.name_lists import SHARED_SUFFIXES, is_shared_suffix

SIBLINGS = 4  # this many names below one parent become a wildcard
_SHOWN = 4


@frozen
class Proposal:
    """A rule for `allow_domains`, and the names that a wildcard replaces."""

    rule: str
    folded: tuple[str, ...] = ()

    @property
    def comment(self) -> str:
        return used_comment("name", self.folded, _SHOWN)


def used_comment(noun: str, folded: Sequence[str], most: int) -> str:
    """What a rule stands for: *most* of the names or paths that were used, and how many more."""
    if not folded:
        return ""
    more = f", and {len(folded) - most} more" if len(folded) > most else ""
    used = f"1 {noun} was" if len(folded) == 1 else f"{len(folded)} {noun}s were"
    return f"{used} used: {', '.join(folded[:most])}{more}"


def fold_names(
    used: Iterable[tuple[str, int]], default_ports: Collection[int], denied: Iterable[str] = ()
) -> list[Proposal]:
    """*used*: canonical names and ports. *denied*: names that no wildcard may cover."""
    closed = tuple(denied)
    by_port: dict[str, set[str]] = {}
    for name, port in used:
        by_port.setdefault("" if port in default_ports else f":{port}", set()).add(name)
    found: list[Proposal] = []
    for suffix, names in sorted(by_port.items()):
        found += _folded(names, suffix, closed)
    return sorted(found, key=lambda proposal: _order(proposal.rule))


def may_stand_over(parent: str, denied: Iterable[str] = ()) -> bool:
    """Whether `*.parent` covers only names of one owner, as far as is known, and no denied name."""
    if is_shared_suffix(parent) or any(name.endswith(f".{parent}") for name in SHARED_SUFFIXES):
        return False
    return not any(name.endswith(f".{parent}") for name in denied)


def _folded(names: set[str], suffix: str, denied: tuple[str, ...]) -> list[Proposal]:
    families: dict[str, list[str]] = {}
    for name in sorted(names):
        families.setdefault(name.partition(".")[2], []).append(name)
    found: list[Proposal] = []
    for parent, children in families.items():
        if len(children) >= SIBLINGS and may_stand_over(parent, denied):
            found.append(Proposal(f"*.{parent}{suffix}", tuple(children)))
        else:
            found += [Proposal(f"{name}{suffix}") for name in children]
    covered = tuple(each.rule.removeprefix("*").removesuffix(suffix) for each in found if each.folded)
    return [each for each in found if each.folded or not each.rule.removesuffix(suffix).endswith(covered)]


def _order(rule: str) -> list[str]:
    """Sorts by domain, not by first letter."""
    return rule.removeprefix("*.").split(".")[::-1]
