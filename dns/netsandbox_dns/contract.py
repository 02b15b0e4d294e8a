"""What the resolver door asks of the launcher, and the values that travel between them.

The door parses, answers and folds records; it decides nothing by itself. Rules kept:

1. No answer leaves before `note` returned True for a record that stands for it (INV-5).
2. Whatever `judge` raises, and whatever `note` fails to write, the client gets SERVFAIL and no address (INV-1).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

# The reasons of the launcher's closed list that this component itself gives (INV-11).
RULE = "rule"
LOOPBACK = "loopback"
NOT_ALLOWED = "not-allowed"
BAD_NAME = "bad-name"
QUERY_TYPE = "query-type"
TUNNEL_LABEL = "tunnel-label"
TUNNEL_RATE = "tunnel-rate"
MALFORMED = "malformed"
UNSUPPORTED = "unsupported"
LIMIT = "limit"
INTERNAL = "internal"


class Judgement:
    """The launcher's verdict on one question."""

    __slots__ = ("allowed", "forward", "host", "loopback", "reason", "rule", "wildcard")

    def __init__(
        self,
        *,
        allowed: bool,
        reason: str,
        host: str,
        rule: str | None = None,
        loopback: bool = False,
        wildcard: str | None = None,
        forward: bool = False,
    ) -> None:
        self.allowed = allowed
        self.reason = reason  # of the closed list
        self.host = host  # canonical and printable: the one string that is matched, mapped and logged (INV-2)
        self.rule = rule  # the rule that decided, as the user wrote it
        self.loopback = loopback  # a name of the session's own loopback
        self.wildcard = wildcard  # the parent ("example.com" of *.example.com) when a wildcard matched, else None
        self.forward = forward  # this question's type may go upstream although it is not an address type


class Note(Protocol):
    """Write one audit record that stands for *count* identical questions; False: it could not be written."""

    def __call__(self, host: str, qtype: int, *, allowed: bool, reason: str, rule: str | None, count: int) -> bool: ...


class NoteUdp(Protocol):
    """Record *count* datagrams of *length* bytes together that were sent to a destination and dropped."""

    def __call__(self, address: str, port: int, length: int, count: int) -> object: ...
