"""Turns used requests into rules for requests: each path, or a glob for many. Pure.

Rules kept, so that a reader of the proposal can accept it:

1. A rule has the methods that were used with its very pattern, and no other. HEAD joins a pattern of GET, since it
   shows less.
2. Parts of a path that name one thing of many (numbers, UUIDs, hashes, versions) become `*`.
3. Of requests that only read (GET, HEAD, OPTIONS), four or more neighbours become `*`, or `**` where some lie deeper.
   For a whole host it takes twelve. A path that can be read in two ways, such as `/@scope%2fname` of npm, is covered
   only by a rule for every path of its host.
4. A request that may write is never folded by its neighbours, and its numbers only if several were used. It has no
   `**`: what it opens stays where it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from netsandbox.frozen import frozen
from netsandbox.learn.name_folding import used_comment
from netsandbox.policy.http_paths import ANY, PathGlob, canonical_path
from netsandbox.policy.http_rules import base_url

SIBLINGS = 4  # so many neighbours are folded
HOST_SIBLINGS = 12  # and so many directly below the root
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_SHOWN = 2
_MAX_SHOWN = 40  # characters of a path in a comment
_IDENTIFIERS = re.compile(
    r"(?<![0-9A-Za-z])(?:"
    r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"
    r"|v?[0-9]+(?:\.[0-9]+)+(?:[-.+]?(?:alpha|beta|rc|dev|post|a|b)[-.]?[0-9]*)?"
    r"|(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,128}"
    r"|[0-9]+"
    r")(?![0-9A-Za-z])"
)


@frozen
class LearntRequest:
    """A request as it was used. Its path is canonical and has no `*`; of one that only reads it may have no canonical
    form."""

    scheme: str
    host: str
    port: int
    method: str
    path: str


@frozen
class RequestProposal:
    """A rule for `allow_http`, and the paths that its glob replaces."""

    rule: str
    folded: tuple[str, ...] = ()

    @property
    def comment(self) -> str:
        shown = [path if len(path) <= _MAX_SHOWN else f"{path[:_MAX_SHOWN]}..." for path in self.folded]
        return used_comment("path", shown, _SHOWN)


def fold_requests(used: Iterable[LearntRequest]) -> list[RequestProposal]:
    paths: dict[tuple[str, str], set[str]] = {}  # by place and method
    for each in used:
        paths.setdefault((base_url(each.scheme, each.host, each.port), each.method), set()).add(each.path)
    methods: dict[tuple[str, str], dict[str, set[str]]] = {}  # by place and pattern: the paths of each method
    for (place, method), found in paths.items():
        if method == "HEAD":
            patterns = _folded_heads(found, paths.get((place, "GET"), set()))
        else:
            patterns = _folded_reads(found) if method in SAFE_METHODS else _folded_writes(found)
        for pattern in patterns:
            methods.setdefault((place, pattern), {})[method] = _matching(pattern, found)
    made = []
    for (place, pattern), by_method in sorted(methods.items()):
        named = [*(each for each in SAFE_METHODS if each in by_method), *sorted(by_method.keys() - SAFE_METHODS)]
        covered = sorted(set().union(*by_method.values()))
        folded = () if covered == [pattern] else tuple(covered)
        made.append(RequestProposal(f"{','.join(named)} {place}{pattern}", folded))
    return made


def _matching(pattern: str, paths: set[str]) -> set[str]:
    glob = PathGlob(pattern)
    return {path for path in paths if glob.matches(path)}


def _without_identifiers(path: str) -> str:
    return "/".join(_IDENTIFIERS.sub("*", segment) for segment in path.split("/"))


def _folded_writes(paths: set[str]) -> set[str]:
    shapes: dict[str, list[str]] = {}
    for path in paths:
        shapes.setdefault(_without_identifiers(path), []).append(path)
    return _outermost({each for shape, found in shapes.items() for each in ([shape] if len(found) > 1 else found)})


def _is_unclear(paths: set[str]) -> bool:
    return any(canonical_path(path) is None for path in paths)


def _folded_heads(paths: set[str], read: set[str]) -> set[str]:
    """*read* are the paths of GET, whose patterns they join."""
    if _is_unclear(paths):
        return {f"/{ANY}"}
    shared = {each for each in _folded_reads(read) if _matching(each, paths)}
    return shared | _folded_reads(paths.difference(*(_matching(each, paths) for each in shared)))


def _folded_reads(paths: set[str]) -> set[str]:
    if _is_unclear(paths):
        return {f"/{ANY}"}
    patterns = {tuple(_without_identifiers(path).split("/")[1:]) for path in paths}
    folded = {"/" + "/".join(pattern) for pattern in _grown(patterns, HOST_SIBLINGS)}
    return _outermost(folded)


def _grown(patterns: set[tuple[str, ...]], enough: int) -> set[tuple[str, ...]]:
    """*patterns* below one folder, folded from the outside inwards."""
    families: dict[str, set[tuple[str, ...]]] = {}
    for first, *rest in patterns:
        families.setdefault(first, set()).add(tuple(rest))
    if len(families) >= enough:
        return {(ANY,)} if any(rest for below in families.values() for rest in below) else {("*",)}
    grown: set[tuple[str, ...]] = set()
    for first, below in families.items():
        if () in below:
            grown.add((first,))
        deeper = {rest for rest in below if rest}
        grown |= {(first, *rest) for rest in _grown(deeper, SIBLINGS)}
    return grown


def _outermost(patterns: set[str]) -> set[str]:
    """Without patterns that another one covers, such as a path beside `*` or `**`."""
    globs = {pattern: PathGlob(pattern) for pattern in patterns if "*" in pattern}
    return {
        pattern
        for pattern in patterns
        if not any(other != pattern and _covers(glob, pattern) for other, glob in globs.items())
    }


def _covers(glob: PathGlob, pattern: str) -> bool:
    """A `*` matches the letters of `**` in another pattern, but not what these stand for."""
    return glob.matches(pattern) and (ANY in glob.segments or ANY not in pattern.split("/"))
