"""Guard against data smuggled out in the labels of names under an allowed wildcard.

A rule for one exact host leaves no choice of names, so only names matched by a wildcard are checked. Three limits, each
above what real content networks, object stores and package hosts use (tests/dns/test_tunnel_guard.py lists such names),
and together a ceiling on what one parent can carry: 100 new names a minute. A known name whose answer has expired
carries data by its choice among the known ones, at most 7 bits, so lookups that reach a server have a wider limit.

Memory is bounded: at most *parents* parents, and per parent the names of its window, at most *names*. No parent is
forgotten while its names count: in a session that asks, a command may name as many parents as it likes, and what could
be pushed out would be counted anew.
"""

from __future__ import annotations

from math import log2

from netsandbox.policy.reasons import TUNNEL_LABEL, TUNNEL_RATE

MAX_LABEL = 52
MAX_SUBDOMAIN = 80
MIN_ENTROPY_LENGTH = 24
MAX_ENTROPY = 4.0
MAX_LOOKUPS = 600  # below one parent in a window; ten names whose answers live for a second


class TunnelGuard:
    """One per session. `admit` and `charge` return None, or the reason why a name is refused. `charge` is called for
    each lookup that reaches a server, after `admit`."""

    def __init__(
        self, *, names: int = 100, window: float = 60.0, parents: int = 512, lookups: int = MAX_LOOKUPS
    ) -> None:
        self._names = names
        self._window = window
        self._parents = parents
        self._lookups = lookups
        self._seen: dict[str, dict[str, float]] = {}  # parent: name, stalest first -> when it was admitted
        self._charged: dict[str, tuple[float, int]] = {}  # parent: begin of its window, lookups in it

    def admit(self, name: str, parent: str | None, now: float) -> str | None:
        if parent is None:
            return None
        parent = _plain(parent)
        below = name[: -len(parent) - 1] if name.endswith("." + parent) else name
        if _looks_encoded(below):
            return TUNNEL_LABEL
        return None if self._is_within_rate(name, parent, now) else TUNNEL_RATE

    def charge(self, parent: str | None, now: float) -> str | None:
        if parent is None:
            return None
        parent = _plain(parent)
        began, count = self._charged.get(parent, (now, 0))
        if now - began >= self._window:
            began, count = now, 0
        if count >= self._lookups:
            return TUNNEL_RATE
        self._charged[parent] = (began, count + 1)
        return None

    def _is_within_rate(self, name: str, parent: str, now: float) -> bool:
        horizon = now - self._window
        seen = self._seen.get(parent)
        if seen is None:
            if len(self._seen) >= self._parents and not self._make_room(horizon):
                return False
            seen = self._seen[parent] = {}
        while seen and seen[stalest := next(iter(seen))] <= horizon:
            del seen[stalest]
        if name in seen:
            return True
        if len(seen) >= self._names:
            return False
        seen[name] = now
        return True

    def _make_room(self, horizon: float) -> bool:
        """Forget the parents whose names are all older than the window; whether there are any."""
        young = {parent: seen for parent, seen in self._seen.items() if seen and seen[next(reversed(seen))] > horizon}
        self._seen = young
        self._charged = {parent: spent for parent, spent in self._charged.items() if parent in young}
        return len(young) < self._parents


def _plain(parent: str) -> str:
    return parent.lstrip("*").lstrip(".")


def _looks_encoded(below: str) -> bool:
    if len(below) > MAX_SUBDOMAIN:
        return True
    for label in below.split("."):
        if len(label) > MAX_LABEL:
            return True
        # Word by word: load balancers and buckets chain readable words and short hashes with hyphens, and such a
        # chain is as varied as noise. One long word as varied as that is not a word.
        for word in label.split("-"):
            if len(word) >= MIN_ENTROPY_LENGTH and entropy(word) > MAX_ENTROPY:
                return True
    return False


def entropy(text: str) -> float:
    """Bits per character, by the text's own letter frequencies."""
    size = len(text)
    return log2(size) - sum(count * log2(count) for count in map(text.count, set(text))) / size
