"""The interface between the TCP doors and the session: the `Gate`, and the values that both sides exchange.

The doors parse and relay; they decide nothing. Every attempt goes to the injected `Gate`, which canonicalises the name,
decides, looks it up, checks the addresses and writes the audit record. Rules kept by every door:

1. No byte is sent upstream, and no connect() is made, before `Gate.dialling` returned True for that address (INV-5).
2. Only an address listed in the grant is dialled (INV-4).
3. After a grant, `Gate.ended` is called exactly once, whatever happens; a later denial first goes to `Gate.refuse`.
"""

from __future__ import annotations

from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from netsandbox.policy.budgets import Meter
    from netsandbox.policy.inspection import HttpRequest, RequestEnd
    from netsandbox.policy.verdict import Verdict
else:
    Protocol = object


class Attempt:
    """One attempt to reach a destination, as the client spelled it."""

    __slots__ = ("abandoned", "address", "door", "host", "port", "source")

    def __init__(self, door: str, host: bytes, port: int, source: tuple[str, int], address: str | None = None) -> None:
        self.door = door  # "connect" | "http" | "socks5" | "transparent"
        self.host = host  # the bytes on the wire, not yet canonical; for "transparent" the destination address
        self.port = port
        self.source = source  # the client's own address, for attribution
        self.address = address  # the destination the kernel saw, where there is one
        self.abandoned = False  # whether the client left before it got a reply


class Parent:
    """A corporate proxy, through which every connection goes."""

    __slots__ = ("addresses", "authorization", "port")

    def __init__(self, addresses: Sequence[tuple[int, str]], port: int, authorization: bytes | None) -> None:
        self.addresses = addresses
        self.port = port
        self.authorization = authorization  # value of Proxy-Authorization, or None


class Grant:
    """The gate allows the attempt: these addresses, in this order, and no others."""

    __slots__ = ("addresses", "allowed", "attempt", "host", "inspection", "meter", "named", "parent", "port", "verdict")

    def __init__(
        self,
        attempt: Attempt,
        host: str,
        addresses: Sequence[tuple[int, str]],
        *,
        named: bool,
        parent: Parent | None = None,
        verdict: Verdict | None = None,
    ) -> None:
        self.allowed = True
        self.attempt = attempt
        self.host = host  # canonical: the one string that is matched, dialled and logged (INV-2)
        self.port = attempt.port
        self.addresses = addresses  # (address family, literal); empty when a parent proxy resolves
        self.named = named  # True: host is a name, so TLS must carry it as SNI
        self.parent = parent
        self.verdict = verdict  # for the records of the gate
        self.inspection: int | None = None  # the connection's number in the log, if its requests are decided on
        self.meter: Meter | None = None  # for the budgets that cover the host


class Refusal:
    """The gate refuses the attempt. `hint` is one line for a person or an agent: what would change the decision."""

    __slots__ = ("allowed", "hint", "host", "port", "reason")

    def __init__(self, host: str, port: int, reason: str, hint: str) -> None:
        self.allowed = False
        self.host = host  # printable, already escaped
        self.port = port
        self.reason = reason
        self.hint = hint


@frozen
class Limits:
    """Every bound that a door keeps; the defaults suit one session.

    Times are seconds on the monotonic clock and are checked once a second by the door's sweep, so a bound is kept to
    within a second. A bound that is reached closes (INV-1); none of them lets anything through.
    """

    head: float = 10.0  # from accept (or from the first byte of a later request) to the end of the request head
    handshake: float = 10.0  # from the grant to first bytes that can be checked
    connect: float = 10.0  # per address
    idle: float = 3600.0  # without a byte in either direction
    keep_alive: float = 75.0  # between two requests of one client
    drain: float = 5.0  # after our last reply, so that the client reads it rather than a reset
    flows: int = 4096  # client connections at once


class Outcome:
    """How a granted attempt ended; the `outcome` of its audit record."""

    TLS = "tls"  # relayed, the SNI was the decided name
    HTTP = "http"  # relayed request by request, every Host was the decided name
    OPAQUE = "opaque"  # relayed, nothing in it could be compared with the name
    UNREACHABLE = "unreachable"
    UNRECORDED = "unrecorded"  # the audit record could not be written, so nothing was dialled
    REFUSED = "refused"  # a denial found after the grant
    DEADLINE = "deadline"
    RESET = "reset"  # one side vanished
    ABANDONED = "abandoned"  # the client left before the gate answered


class Gate(Protocol):
    """Implemented by the session; the doors see nothing else of it."""

    def admit(self, attempt: Attempt, done: Callable[[Grant | Refusal], None]) -> None:
        """Decide, look up and check; call *done* once, now or later. A refusal has been recorded when it arrives."""

    def dialling(self, grant: Grant, address: str) -> bool:
        """Write the egress record for this address. False: the record could not be written, do not dial."""

    def refuse(self, grant: Grant, reason: str, detail: str | None = None) -> Refusal:
        """Record a denial found after the grant (a reason of the closed list, such as sni-mismatch)."""

    def judge(self, grant: Grant, number: int, request: HttpRequest) -> Refusal | None:
        """Decide on a request inside a grant with `inspection`. None: it may go on; its record is written (INV-5)."""

    def answered(self, grant: Grant, end: RequestEnd) -> None:
        """Record the end of such a request."""

    def reject(self, door: str, reason: str, detail: str, source: tuple[str, int]) -> None:
        """Record bytes that never became an attempt: malformed, unsupported, past the deadline."""

    def ended(self, grant: Grant, address: str | None, up: int, down: int, milliseconds: int, outcome: str) -> None:
        """Record the end of a granted attempt."""


class ExchangeRecorder(Protocol):
    """Gets the requests of inspected connections for a HAR file, by connection and number. It decides nothing, and
    raises nothing. A *side* is "up" for the request, "down" for the response."""

    def head(self, connection: int, number: int, version: str, headers: Sequence[tuple[str, str]], side: str) -> None:
        """The head of a message, printable and bounded."""

    def body(self, connection: int, number: int, data: bytes, side: str) -> None:
        """A part of a body."""

    def asked(self, grant: Grant, number: int, request: HttpRequest, refusal: Refusal | None) -> None:
        """The gate decided on a request."""

    def ended(self, grant: Grant, number: int, status: int, sizes: tuple[int, int]) -> None:
        """A request has its whole response; the bytes of both bodies."""

    def lost(self, grant: Grant) -> None:
        """The connection is gone."""
