"""A script that tries Unix sockets from inside, and what it found."""

from __future__ import annotations

import json
from typing import Any

# Each probe prints what happened: the bytes that came back, or the name of the error.
PROBE = """
import errno, json, os, socket, sys
def tried(action):
    try:
        return action()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
def talk(path, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_UNIX, kind) as client:
        client.connect(path)
        client.sendall(b"hello")
        client.shutdown(socket.SHUT_WR)
        return client.recv(5).decode()
def bound(path, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_UNIX, kind) as server:
        server.bind(path)
        return "bound"
def sent(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"hello", path)
        return "sent"
def pair(kind):
    a, b = socket.socketpair(socket.AF_UNIX, kind)
    a.send(b"x")
    return b.recv(1).decode()
out = {}
def report(**results):
    out.update({name: tried(action) for name, action in results.items()})
"""


def script(body: str) -> str:
    return PROBE + body + "\nprint(json.dumps(out))\n"


def results(run: Any) -> dict[str, Any]:
    assert run.stdout, run.stderr
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found
