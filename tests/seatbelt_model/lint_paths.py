"""Findings about filters that cannot match, or not what they seem to: paths above all. Pure.

Seatbelt compares resolved paths. A rule for `/tmp` matches nothing if it takes the rule's path as it is written; a deny
that matches nothing is an open door, so there it is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from netsandbox.backends.seatbelt.profile.mac_paths import ALIASES, resolved
from netsandbox.backends.seatbelt.profile.operations import DEFAULT, family
from tests.seatbelt_model.coverage import disjoint
from tests.seatbelt_model.filters import (
    LITERAL,
    REGEX,
    All,
    End,
    Filter,
    Name,
    Path,
    Some,
    UnixEnd,
    plain,
)
from tests.seatbelt_model.findings import ERROR, WARNING, Finding, error, warning
from tests.seatbelt_model.profile import DENY, Rule
from tests.seatbelt_model.values import written

_LINKED = re.compile(r"\^?(/(?:tmp|var|etc))(?=/|\\/|\$|\(|\Z)")
_PATHS = ("file*", "process*", "network*", "system*", "fs-quota*", "fs-snapshot*", "fs-rename", DEFAULT)
_ENDS = ("network*", "system*", "socket-option*", "socket-ioctl", DEFAULT)
_NAMES = {
    "global-name": ("mach*", DEFAULT),
    "local-name": ("mach*", DEFAULT),
    "xpc-service-name": ("mach*", DEFAULT),
    "sysctl-name": ("sysctl*", DEFAULT),
    "ipc-posix-name": ("ipc*", DEFAULT),
    "iokit-user-client-class": ("iokit*", DEFAULT),
    "iokit-registry-entry-class": ("iokit*", DEFAULT),
}
_MANY = 50  # of pairs within one `require-all`, as many as anybody writes by hand


def path_findings(rule: Rule) -> Iterator[Finding]:
    if rule.filter is None:
        return
    leaves = plain(rule.filter)
    texts = {leaf.value for leaf in leaves if isinstance(leaf, Path)}
    for leaf in leaves:
        if isinstance(leaf, Path):
            yield from _path(rule, leaf, texts)
        yield from _inapplicable(rule, leaf)
    yield from _impossible(rule, rule.filter)


def _path(rule: Rule, leaf: Path, texts: set[str]) -> Iterator[Finding]:
    severity = ERROR if rule.action == DENY else WARNING
    if leaf.how == REGEX:
        linked = _LINKED.match(leaf.value)
        if linked:
            text = f"{linked[1]} is a link, so this matches nothing; write /private{linked[1]}"
            yield Finding(leaf.line, severity, "unresolved", text, rule.source)
        return
    if not leaf.value.startswith("/"):
        text = (
            f"{written(leaf.value)} is not an absolute path and matches nothing; several values are alternatives, so "
            "join the parts of one path with string-append"
        )
        yield error(leaf.line, "relative", text, rule.source)
        return
    true = resolved(leaf.value)
    if leaf.value != true and true not in texts and not _is_link_itself(rule, leaf):
        text = f"{written(leaf.value)} is not resolved and may match nothing; write {written(true)}"
        yield Finding(leaf.line, severity, "unresolved", text, rule.source)


def _is_link_itself(rule: Rule, leaf: Path) -> bool:
    """To look at a link, `lstat` or `readlink`, is to look at its own path."""
    return leaf.how == LITERAL and leaf.value in ALIASES and rule.operations == ("file-read-metadata",)


def _inapplicable(rule: Rule, leaf: Filter) -> Iterator[Finding]:
    fitting = _fitting(leaf)
    for name in rule.operations:
        if fitting and family(name) not in fitting:
            text = f"a filter of this kind never matches {name}; move it to a rule of its own"
            yield warning(leaf.line, "never-matches", text, rule.source)


def _fitting(leaf: Filter) -> tuple[str, ...]:
    if isinstance(leaf, Path):
        return _PATHS
    if isinstance(leaf, (End, UnixEnd)):
        return _ENDS
    return _NAMES.get(leaf.key, ()) if isinstance(leaf, Name) else ()


def _impossible(rule: Rule, filter_: Filter) -> Iterator[Finding]:
    """Filters that must all match and cannot."""
    if isinstance(filter_, All):
        parts = [part for part in filter_.parts if isinstance(part, (Path, Name))][:_MANY]
        if any(disjoint(left, right) for left, right in combinations(parts, 2)):
            text = "nothing matches all of these filters, so the rule does nothing; write require-any, or remove it"
            yield warning(filter_.line, "never-matches", text, rule.source)
    if isinstance(filter_, (All, Some)):
        for part in filter_.parts:
            yield from _impossible(rule, part)
