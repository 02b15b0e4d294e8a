"""The host's name servers and hosts file, from the text of resolv.conf(5) and hosts(5). Pure: no file is read here.

The search list is ignored on purpose: a decision is about the whole name that the client sent, and nothing is ever
appended to it.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_pton

MAX_SERVERS = 3  # as the C library has it
DNS_PORT = 53


class NameServers:
    """Which servers are queried (address and port), how long each may take, and how often each is tried."""

    __slots__ = ("attempts", "places", "timeout")

    def __init__(self, places: list[tuple[str, int]], timeout: float = 2.0, attempts: int = 2) -> None:
        self.places = places
        self.timeout = timeout
        self.attempts = attempts


def parse_resolv_conf(text: str) -> NameServers:
    """Without a usable nameserver line the C library queries 127.0.0.1, and so do we."""
    found = NameServers([])
    for line in text.splitlines():
        words = line.split()
        if len(words) < 2:
            continue
        if words[0] == "nameserver" and len(found.places) < MAX_SERVERS and is_address(words[1]):
            found.places.append((words[1], DNS_PORT))
        elif words[0] == "options":
            for word in words[1:]:
                _take_option(found, word)
    found.places = found.places or [("127.0.0.1", DNS_PORT)]
    return found


def _take_option(found: NameServers, word: str) -> None:
    name, _, value = word.partition(":")
    if not (value.isascii() and value.isdigit() and len(value) < 6):
        return
    if name == "timeout":
        found.timeout = float(min(max(int(value), 1), 30))
    elif name == "attempts":
        found.attempts = min(max(int(value), 1), 5)


def parse_hosts(text: str) -> dict[str, list[str]]:
    """Lower-case names to their addresses, in the order of the file."""
    table: dict[str, list[str]] = {}
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if len(words) < 2 or not is_address(words[0]):
            continue
        for name in words[1:]:
            addresses = table.setdefault(name.rstrip(".").lower(), [])
            if words[0] not in addresses:
                addresses.append(words[0])
    return table


def is_address(text: str) -> bool:
    """An IPv4 or IPv6 literal, the latter with or without a zone."""
    bare = text.partition("%")[0] if ":" in text else text
    return family_of(bare) is not None


def family_of(text: str) -> int | None:
    for family in (AF_INET, AF_INET6):
        try:
            inet_pton(family, text)
        except (OSError, UnicodeError, ValueError):
            continue
        return int(family)
    return None
