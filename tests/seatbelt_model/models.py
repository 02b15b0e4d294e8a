"""What nobody outside Apple knows for certain about Seatbelt, as assumptions that can be put together. Pure.

Reports contradict one another. Instead of believing one of them, a profile is judged under every combination:
something counts as denied only if all models deny it, and as allowed only if all allow it. Each assumption says what it
assumes and where that comes from: **rep** is a report by somebody who tried it on a Mac, **?** is a guess that nobody
has ruled out and that is here because being wrong about it would open something.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True)
class Assumption:
    """One answer to one disputed question."""

    name: str
    says: str
    reported: str


LAST_MATCH = Assumption("last-match", "the last rule that matches wins, whatever it is", "rep: clash#295, synergy#1440")
FILTERED_FIRST = Assumption(
    "filtered-first", "a rule with a filter beats one without, whatever their order", "rep, measured for paths: mxc#754"
)
NEAREST_OPERATION = Assumption(
    "nearest-operation",
    "a rule on the operation itself beats one on its parent, whatever their order",
    "rep, measured for file-read-data under file-read*: greywall#20, fence#218",
)
NEAREST_FILTERED = Assumption(
    "nearest-filtered", "nearest operation first, and there rules with a filter first", "rep: greywall#20 with mxc#754"
)

LOCALHOST_EXACT = Assumption("localhost-exact", "localhost is 127.0.0.1 and ::1", "rep: codex#42925")
LOCALHOST_MAPPED = Assumption("localhost-mapped", "localhost is ::ffff:127.0.0.1 too", "?: against codex#42925")
LOCALHOST_NET = Assumption("localhost-net", "localhost is the whole of 127.0.0.0/8, and ::1", "?")
LOCALHOST_OWN = Assumption(
    "localhost-own", "localhost is every address of this machine, however it is written", "?: hinted at in mxc#1075"
)

LOCAL_OPENS_ALL = Assumption(
    "local-opens-all", "`local` on an outbound rule matches every connection", "rep: srt#131, srt#225"
)
LOCAL_MATCHES_NOTHING = Assumption(
    "local-matches-nothing", "`local` on an outbound rule matches no connection", "rep: pmg#374"
)

BIND_UNDER_INBOUND = Assumption("bind-under-inbound", "network-bind is a child of network-inbound", "rep")
BIND_ALONE = Assumption("bind-alone", "network-bind hangs under network* only", "?")

PATHS_AS_WRITTEN = Assumption(
    "paths-as-written", "a path in a rule that is not resolved matches nothing", "rep: mxc#749"
)
PATHS_RESOLVED = Assumption("paths-resolved", "a path in a rule is resolved before it is compared", "?")

UNDECIDED_ALLOWS = Assumption(
    "undecided-allows", "what the request does not say turns out in favour of allowing", "how requests are judged here"
)
UNDECIDED_DENIES = Assumption(
    "undecided-denies", "what the request does not say turns out in favour of denying", "how requests are judged here"
)

PRECEDENCES = (LAST_MATCH, FILTERED_FIRST, NEAREST_OPERATION, NEAREST_FILTERED)
LOCALHOSTS = (LOCALHOST_EXACT, LOCALHOST_MAPPED, LOCALHOST_NET, LOCALHOST_OWN)
LOCALS = (LOCAL_OPENS_ALL, LOCAL_MATCHES_NOTHING)
BINDS = (BIND_UNDER_INBOUND, BIND_ALONE)
PATHS = (PATHS_AS_WRITTEN, PATHS_RESOLVED)
UNDECIDED = (UNDECIDED_ALLOWS, UNDECIDED_DENIES)


@dataclass(frozen=True)
class Matching:
    """The part of a model that decides whether a filter matches."""

    localhost: Assumption = LOCALHOST_EXACT
    local: Assumption = LOCAL_OPENS_ALL
    paths: Assumption = PATHS_AS_WRITTEN


@dataclass(frozen=True)
class Model:
    """One answer to every disputed question. The defaults are the answers reported most often."""

    precedence: Assumption = LAST_MATCH
    matching: Matching = Matching()
    bind: Assumption = BIND_UNDER_INBOUND
    undecided: Assumption = UNDECIDED_DENIES

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        seen = self.matching
        return self.precedence, seen.localhost, seen.local, self.bind, seen.paths, self.undecided

    @property
    def name(self) -> str:
        return ", ".join(each.name for each in self.assumptions)


def all_matchings() -> Iterator[Matching]:
    for localhost, local, paths in product(LOCALHOSTS, LOCALS, PATHS):
        yield Matching(localhost, local, paths)


def all_models() -> Iterator[Model]:
    """Every combination."""
    for matching, precedence, bind, undecided in product(all_matchings(), PRECEDENCES, BINDS, UNDECIDED):
        yield Model(precedence, matching, bind, undecided)
