"""What listens where, by the kernel's own tables: inside a session, and on the host by the hand of its supervisor."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.rig.patience import WaitedInVain

SOURCES = Path(__file__).parent / "sources"
DOORS = frozenset((53, 1008, 1009, 1010, 1011))
LISTEN = "0A"


class Endpoint(NamedTuple):
    address: str
    port: int
    inode: str


def source(name: str) -> str:
    """The text of one of the rig's programs."""
    return (SOURCES / name).read_text()


def listeners(pid: int | str = "self") -> set[Endpoint]:
    """The TCP sockets that listen in the network of PID."""
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTEN:
                address, _, port = fields[1].partition(":")
                found.add(Endpoint(_spelled(address), int(port, 16), fields[9]))
    return found


def _spelled(text: str) -> str:
    words = [int(text[n : n + 8], 16).to_bytes(4, "little") for n in range(0, len(text), 8)]
    packed = b"".join(words)
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)


def inner_listeners(status: dict[str, Any]) -> set[Endpoint]:
    """What listens inside a session, its doors left out."""
    return {found for found in listeners(status["init"]) if found.port not in DOORS}


def host_listeners(supervisor: int) -> set[Endpoint]:
    """What the supervisor listens on, on the host."""
    links = []
    for entry in Path(f"/proc/{supervisor}/fd").iterdir():
        try:
            links.append(os.readlink(entry))
        except OSError:  # closed meanwhile
            continue
    return {found for found in listeners() if f"socket:[{found.inode}]" in links}


def sessions(netsandbox: Any, **more: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(netsandbox("ps", "--json", **more).stdout)
    return found


def status_of(netsandbox: Any, name: str) -> dict[str, Any]:
    """What the session says of itself, once it can be asked: it opens its control socket when it has time for it."""
    found = eventually(lambda: [status for status in sessions(netsandbox) if status["name"] == name])
    return dict(found[0])


def window_of(status: dict[str, Any]) -> range:
    return range(status["window"]["base"], status["window"]["base"] + status["window"]["count"])


def eventually(condition: Callable[[], Any], within: float = 30.0) -> Any:
    """The first true value of CONDITION; fails when there is none in time."""
    deadline = time.monotonic() + within
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise WaitedInVain(f"not within {within} s: {condition}")
        time.sleep(0.02)
    return value


def heard(address: str, port: int, patience: float = 20) -> bytes:
    """What a server says first."""
    with socket.create_connection((address, port), patience) as client:
        client.settimeout(patience)
        return client.recv(100)
