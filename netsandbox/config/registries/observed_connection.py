"""Where a tool goes that has no words for it: it is given a proxy on loopback that listens, notes and refuses.

Nothing leaves the machine: the tool is in a session that reaches this one port. The proxy's password is made for this
one question, so that no other user of the machine can answer in its place.
"""

from __future__ import annotations

import os

from netsandbox.config.registries.query_sandbox import GRACE, QuerySandbox
from netsandbox.config.registries.tool_process import PATIENCE, end

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    import subprocess
    from collections.abc import Mapping, Sequence

_HEAD_LIMIT = 8192


def first_destination(
    command: Sequence[str], environment: Mapping[str, str], home: str, variable: str, *, patience: float = PATIENCE
) -> str | None:
    """`HOST:PORT` of the first tunnel that *command* asks for when *variable* names its proxy."""
    import socket

    password = os.urandom(16).hex()
    try:
        with socket.create_server(("127.0.0.1", 0)) as server, QuerySandbox(server.getsockname()[1]) as enclosure:
            proxy = f"http://registry:{password}@127.0.0.1:{server.getsockname()[1]}"
            process = enclosure.start(command, {**environment, variable: proxy}, home)
            found = None if process is None else _heard(process, server, password, patience)
            return found if enclosure.untouched() else None
    except OSError:  # no port, or no temporary folder
        return None


def _heard(process: subprocess.Popen[bytes], server: socket.socket, password: str, patience: float) -> str | None:
    """What *process* asks for while it runs; afterwards it does no more."""
    from time import monotonic

    deadline = monotonic() + patience
    try:
        while process.poll() is None and monotonic() < deadline:
            found = _visitor(server, password)
            if found is not None:
                return found
        return None
    finally:
        end(process, GRACE)


def _visitor(server: socket.socket, password: str) -> str | None:
    """What the next visitor asks for, if it comes soon and knows the password."""
    server.settimeout(0.1)
    try:
        visitor, _ = server.accept()
    except OSError:
        return None
    head = b""
    with visitor:
        visitor.settimeout(2)
        try:
            while b"\r\n\r\n" not in head and len(head) < _HEAD_LIMIT:
                piece = visitor.recv(_HEAD_LIMIT)
                if not piece:
                    break
                head += piece
            visitor.sendall(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        except OSError:
            pass
    return tunnel_of(head, f"registry:{password}")


def tunnel_of(head: bytes, credentials: str) -> str | None:
    """The target of a CONNECT request that carries *credentials* (pure)."""
    from base64 import b64encode

    lines = head.partition(b"\r\n\r\n")[0].split(b"\r\n")
    words = lines[0].split(b" ")
    given = [line.partition(b":") for line in lines[1:]]
    tokens = [value.split() for name, _, value in given if name.lower() == b"proxy-authorization"]
    if len(words) != 3 or words[0] != b"CONNECT" or not words[1].isascii():
        return None
    return words[1].decode("ascii") if tokens == [[b"Basic", b64encode(credentials.encode("ascii"))]] else None
