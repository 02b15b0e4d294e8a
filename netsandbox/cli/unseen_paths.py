"""Paths among the words of a command that failed, which exist here and which its session did not see.

A session records what it refuses to open. A program that only looks whether a path exists leaves no record, such as
`ls ~/Documents` or `git clone ../other.git`.
"""

from __future__ import annotations

import os

from netsandbox.backends.namespaces.path_access import path_access
from netsandbox.paths import home, short
from netsandbox.policy.file_denials import Advice, is_secret, removal, shell_path
from netsandbox.policy.file_rules import PROJECT, READ, is_within
from netsandbox.runtime.protection import own_paths
from netsandbox.text import single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from netsandbox.policy.file_rules import FileRules

MAX_PATHS = 2


def unseen_lines(
    words: Sequence[str], rules: FileRules, environment: Mapping[bytes, bytes], told: Iterable[str]
) -> list[str]:
    """A line a path. *told* are paths that other lines are about."""
    if rules.mode != PROJECT:
        return []
    known = tuple(told)
    found = (path for path in _paths(words) if not any(is_within(each, path) for each in known))
    lines = (_line(path, rules, environment) for path in found)
    return [line for line in lines if line is not None][:MAX_PATHS]


def _paths(words: Sequence[str]) -> Iterator[str]:
    """Without those that lead over links: the command may have made one, to be shown what it points at."""
    for word in dict.fromkeys(words):
        named = word.partition("=")[2] if word.startswith("-") else word
        path = os.path.abspath(named)
        if named.startswith(("/", "../")) and os.path.exists(path) and os.path.realpath(path) == path:
            yield path


def _line(path: str, rules: FileRules, environment: Mapping[bytes, bytes]) -> str | None:
    access = path_access(rules, environment, os.getcwd(), path)
    if access.reads:
        return None
    what, own = f"{short(path)} exists, but this session does not see it", os.path.realpath(home())
    if access.rule is not None:
        return single_line(f"{what}; {removal(access.rule)} to show it")
    option = Advice(own, str, own_paths).option(path, READ)
    if option is None or is_within(own, path):
        return None
    secret = ", which holds secrets" if is_secret(path, own) else ""
    return single_line(f"{what}; show it with {option[0]} {shell_path(path, own)}{secret}")
