"""Ports of this machine as the kernel lists them: who listens where, and which can be had."""

from __future__ import annotations

import os
import random
import socket
import sys
import time
from pathlib import Path

import pytest

from tests.rig import processes
from tests.rig.patience import WaitedInVain

LISTEN = "0A"
QUIET = range(10_000, 20_000)  # below the pool of sessions and what the kernel lends to connections
LENT = range(33_000, 60_000)  # what the kernel lends to connections
PATIENCE = 90  # seconds: connections that have ended keep their ports for a minute
Endpoint = tuple[str, int]


def listening() -> dict[str, Endpoint]:
    """Every TCP socket that listens in our own network: inode -> address and port."""
    found = {}
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTEN:
                address, _, port = fields[1].partition(":")
                found[fields[9]] = (_address(family, address), int(port, 16))
    return found


def _address(family: socket.AddressFamily, text: str) -> str:
    """/proc prints each 32-bit word in the machine's own order."""
    raw = bytes.fromhex(text)
    words = [raw[at : at + 4] for at in range(0, len(raw), 4)]
    return socket.inet_ntop(family, b"".join(word[::-1] if sys.byteorder == "little" else word for word in words))


def listeners_of(pid: int) -> set[Endpoint]:
    """Where PID listens on the host; its sockets in a session's network do not count."""
    held = processes.descriptors(pid)
    return {place for inode, place in listening().items() if f"socket:[{inode}]" in held}


def can_bind(address: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # old connections may linger; listeners may not
        try:
            sock.bind((address, port))
            sock.listen(1)
        except OSError:
            return False
    return True


def wait_until_free(*places: Endpoint, within: float = 10) -> None:
    """Waits until all PLACES can be bound again."""
    deadline = time.monotonic() + within
    while taken := [place for place in places if not can_bind(*place)]:
        if time.monotonic() > deadline:
            raise WaitedInVain(f"still taken after {within} s: {taken}")
        time.sleep(0.005)


def free_port() -> int:
    """A port that nobody has now, nor had within the last minute."""
    return free_window(1)


def free_window(count: int, among: range = QUIET) -> int:
    """The first of COUNT such ports in a row. Drawn by lot: another test run may look at the same moment."""
    own, deadline = _share(among), time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for _ in range(1000):
            base = random.randrange(own.start, own.stop - count)
            if all(is_free(port) for port in range(base, base + count)):
                return base
        time.sleep(1)
    pytest.fail(f"no {count} free ports in a row in {among}")


def _share(among: range) -> range:
    """The part of AMONG that is this process's alone, where pytest-xdist runs several side by side."""
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    size = len(among) // count
    return among[number * size : (number + 1) * size]


def is_free(port: int) -> bool:
    """By both protocols, on every address of IPv4 and on that of IPv6: whatever a test binds there will succeed."""
    kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM)
    return all(is_untouched(address, port, kind) for address in ("0.0.0.0", "::1") for kind in kinds)


def is_untouched(address: str, port: int, kind: int = socket.SOCK_STREAM) -> bool:
    """Without SO_REUSEADDR: what lingers of old connections counts too."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind) as sock:
        try:
            sock.bind((address, port))
        except OSError:
            return False
    return True


def free_device() -> str:
    """An address of 127/8 outside of those that sessions get by themselves, drawn by lot."""
    return f"127.{random.randrange(128, 255)}.{random.randrange(256)}.{random.randrange(2, 255)}"
