"""Attempts through unix sockets: abstract, in the file system, created after the start, and by datagram."""

from __future__ import annotations

import os
import socket
import time

from netsandbox.doctor.inside.prevented import Prevented


def stream(path: str) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(path)
        client.sendall(b"probe")
    return "connected"


def late(ready: str, path: str) -> str:
    """Ask the outside for a socket that was not there when the session was built, then go for it."""
    os.close(os.open(ready, os.O_CREAT | os.O_WRONLY, 0o600))
    for _ in range(600):
        if os.path.exists(path):
            return stream(path)
        time.sleep(0.005)
    raise Prevented("the socket never appeared")


def datagram(path: str) -> str:
    """One end of a datagram pair can be aimed at any path, without a call to socket(2)."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        ours.sendto(b"probe", path)
    return "sent"
