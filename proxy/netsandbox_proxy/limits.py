"""How long and how much: every bound a door keeps, in one value.

Times are seconds on the monotonic clock and are checked once a second by the door's sweep, so a bound is kept to
within a second. A bound that is reached closes (INV-1); none of them lets anything through.
"""

from __future__ import annotations

PARENT_HEAD = 16 * 1024  # the longest answer of a parent proxy to our CONNECT


class Limits:
    """The defaults suit one workload; tests and small machines make their own."""

    __slots__ = ("connect", "drain", "flows", "handshake", "head", "idle", "keep_alive")

    def __init__(
        self,
        *,
        head: float = 10.0,
        handshake: float = 10.0,
        connect: float = 10.0,
        idle: float = 3600.0,
        keep_alive: float = 75.0,
        drain: float = 5.0,
        flows: int = 4096,
    ) -> None:
        self.head = head  # from accept (or from the first byte of a later request) to the end of the request head
        self.handshake = handshake  # from the grant to a first flight that can be judged
        self.connect = connect  # per address
        self.idle = idle  # without a byte in either direction
        self.keep_alive = keep_alive  # between two requests of one client
        self.drain = drain  # after our last answer, so that the client reads it rather than a reset
        self.flows = flows  # client connections at once
