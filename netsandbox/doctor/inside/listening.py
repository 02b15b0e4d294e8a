"""Attempts to be a server: in the session's window, which must work, and elsewhere."""

from __future__ import annotations

import os
import socket


def listen(address: str, port: int | None) -> str:
    """*port* None: the first of the session's window."""
    wanted = int(os.environ["LISTENING_BASE_PORT"]) if port is None else port
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as server:
        server.bind((address, wanted))
        server.listen()
        return f"listens on port {server.getsockname()[1]}"
