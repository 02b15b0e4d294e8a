"""The host's own addresses from `ifconfig`, for the address guard. They are read again after five seconds."""

from __future__ import annotations

import subprocess

from netsandbox.errors import HostError
from netsandbox.policy.ip import Address, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

IFCONFIG = "/sbin/ifconfig"
PATIENCE = 2.0
FRESH_SECONDS = 5.0


def parse_ifconfig(text: str) -> frozenset[Address]:
    """The word after each `inet` and `inet6`; an IPv6 address has its interface, as in `fe80::1%lo0`."""
    found = set()
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] in ("inet", "inet6"):
            address = parse(words[1].partition("%")[0])
            if address is not None:
                found.add(address)
    return frozenset(found)


class InterfaceAddresses:
    """Called before the command runs, then by the gate; returns the same object while nothing changes."""

    def __init__(self, clock: Callable[[], float], program: str = IFCONFIG) -> None:
        self._clock = clock
        self._program = program
        self._read_at = float("-inf")
        self._known: frozenset[Address] = frozenset()

    def __call__(self) -> frozenset[Address]:
        now = self._clock()
        if now - self._read_at > FRESH_SECONDS:
            found = parse_ifconfig(self._run_ifconfig())
            if found and found != self._known:  # an empty list is an error: every macOS has 127.0.0.1
                self._known = found
            if not self._known:  # a command that uses up all processes must not be able to keep it empty
                raise HostError(f"{self._program} lists no address of this Mac; nothing is let through")
            self._read_at = now
        return self._known

    def _run_ifconfig(self) -> str:
        try:
            done = subprocess.run([self._program, "-a"], capture_output=True, timeout=PATIENCE, check=False, env={})
        except (OSError, subprocess.TimeoutExpired):  # keep the known addresses; the guard's ranges apply in any case
            return ""
        return done.stdout.decode("ascii", "replace")
