"""What a rule asks of a request. Pure.

A filter answers True, False, or None when the request does not say enough; `require-all`, `require-any` and
`require-not` carry the None through, and the model decides at the end what becomes of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address

from netsandbox.backends.seatbelt.profile.mac_paths import resolved
from tests.seatbelt_model import models
from tests.seatbelt_model.models import Matching
from tests.seatbelt_model.request import Endpoint, Request

LITERAL, SUBPATH, PREFIX, REGEX, ANCESTORS = "literal", "subpath", "prefix", "regex", "path-ancestors"
LOCAL, REMOTE = "local", "remote"
ANY, LOCALHOST = "*", "localhost"
_LOOPBACK = IPv4Network("127.0.0.0/8")


class Filter:
    """Anything that can stand in a rule after its operations."""

    line: int = 0
    parts: tuple[Filter, ...] = ()  # the filters it is made of

    def matches(self, request: Request, matching: Matching) -> bool | None:
        raise NotImplementedError


_resolved = cache(resolved)  # a profile's few hundred paths, for each of ten thousand requests


@dataclass(frozen=True)
class Path(Filter):
    """A file, or a Unix socket by its file."""

    how: str
    value: str
    line: int = field(default=0, compare=False)

    def matches(self, request: Request, matching: Matching) -> bool | None:
        path = request.path
        if path is None:
            return False
        if self.how == REGEX:
            return found_in(path, self.value)
        value = _resolved(self.value) if matching.paths is models.PATHS_RESOLVED else self.value
        if self.how == LITERAL:
            return path == value
        if self.how == PREFIX:
            return path.startswith(value)
        if self.how == ANCESTORS:
            return path != value and is_below(value, path)
        return is_below(path, value)


def found_in(text: str, expression: str) -> bool | None:
    """Anywhere in it, as Seatbelt looks. Matchers differ on line ends, so with one inside nothing is decided."""
    return None if "\n" in text else re.search(expression, text) is not None


def is_below(path: str, root: str) -> bool:
    """*path* is *root* or somewhere under it."""
    return path == root or path.startswith(root if root == "/" else f"{root}/")


@dataclass(frozen=True)
class End(Filter):
    """The local or the remote end of an IP connection."""

    side: str
    protocol: str  # tcp, udp or ip, perhaps with 4 or 6 after it
    host: str = ANY
    port: int | None = None
    line: int = field(default=0, compare=False)

    def matches(self, request: Request, matching: Matching) -> bool | None:
        if request.path is not None:
            return False
        if self.side == LOCAL and request.operation == "network-outbound":
            return matching.local is models.LOCAL_OPENS_ALL
        end = request.remote if self.side == REMOTE else request.local
        if end is None:
            return None if request.operation.startswith("network") else False
        return self._protocol_fits(end) and self._host_fits(end, matching) and self.port in (None, end.port)

    def _protocol_fits(self, end: Endpoint) -> bool:
        if self.protocol[-1] in "46" and self.protocol[-1] != str(end.address.version):
            return False
        return self.protocol.rstrip("46") in ("ip", end.protocol)

    def _host_fits(self, end: Endpoint, matching: Matching) -> bool:
        if self.host == ANY:
            return True
        # To connect to 0.0.0.0 is to connect to this machine, but to listen there is to listen for all others.
        return not (self.side == LOCAL and _plain(end).is_unspecified) and is_localhost(end, matching.localhost)


def is_localhost(end: Endpoint, assumed: models.Assumption) -> bool:
    """What the host token `localhost` matches is disputed beyond the two addresses that all agree on."""
    address = end.address
    if address in (IPv4Address("127.0.0.1"), IPv6Address("::1")):
        return True
    if assumed is models.LOCALHOST_MAPPED:
        return _plain(end) == IPv4Address("127.0.0.1")
    if assumed is models.LOCALHOST_NET:
        return address in _LOOPBACK
    if assumed is models.LOCALHOST_OWN:
        return end.own or _plain(end) in _LOOPBACK or _plain(end).is_unspecified
    return False


def _plain(end: Endpoint) -> IPv4Address | IPv6Address:
    """The IPv4 address inside an IPv6 one, if there is one."""
    return (end.address.ipv4_mapped if isinstance(end.address, IPv6Address) else None) or end.address


@dataclass(frozen=True)
class UnixEnd(Filter):
    """A Unix socket at one end; without parts, any."""

    side: str
    parts: tuple[Filter, ...] = ()
    line: int = field(default=0, compare=False)

    def matches(self, request: Request, matching: Matching) -> bool | None:
        if request.path is None or not request.operation.startswith("network"):
            return False
        return self.parts[0].matches(request, matching) if self.parts else True


@dataclass(frozen=True)
class Name(Filter):
    """Anything that is told apart by a word: a mach service, a sysctl, a signal's target. `value` None: any."""

    key: str
    how: str
    value: str | None
    line: int = field(default=0, compare=False)

    def matches(self, request: Request, matching: Matching) -> bool | None:
        if self.key not in request.attributes:
            return None
        found = request.attributes[self.key]
        if found is None or self.value is None:
            return found is not None
        if self.how == REGEX:
            return found_in(found, self.value)
        return found.startswith(self.value) if self.how == PREFIX else found == self.value


@dataclass(frozen=True)
class All(Filter):
    """`require-all`."""

    parts: tuple[Filter, ...]
    line: int = field(default=0, compare=False)

    def matches(self, request: Request, matching: Matching) -> bool | None:
        answers = [part.matches(request, matching) for part in self.parts]
        return False if False in answers else None if None in answers else True


@dataclass(frozen=True)
class Some(Filter):
    """`require-any`, and the filters of a rule, of which one is enough."""

    parts: tuple[Filter, ...]
    line: int = field(default=0, compare=False)

    def matches(self, request: Request, matching: Matching) -> bool | None:
        answers = [part.matches(request, matching) for part in self.parts]
        return True if True in answers else None if None in answers else False


@dataclass(frozen=True)
class Not(Filter):
    """`require-not`."""

    parts: tuple[Filter]
    line: int = field(default=0, compare=False)

    def matches(self, request: Request, matching: Matching) -> bool | None:
        answer = self.parts[0].matches(request, matching)
        return None if answer is None else not answer


def plain(filter_: Filter, *, narrowing: bool = True) -> list[Filter]:
    """The filters that are not made of others; those under `require-not`, which only narrow, if asked for."""
    if isinstance(filter_, Not) and not narrowing:
        return []
    if not filter_.parts:
        return [filter_]
    inner = [leaf for part in filter_.parts for leaf in plain(part, narrowing=narrowing)]
    return [filter_, *inner] if isinstance(filter_, UnixEnd) else inner
