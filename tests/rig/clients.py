"""Clients of real servers, for the host and, copied there, for the inside of a session. Standard library only.

`ask(kind, address, port)` gives the page that the server answers and the port at which the server itself believes to
have been reached (getsockname of the accepted socket), where it can tell.
"""

from __future__ import annotations

import http.client
import re
import socket
import subprocess
from typing import Any

TIMEOUT = 30
Answer = dict[str, Any]


def ask(kind: str, address: str, port: int, host: str | None = None) -> Answer:
    """KIND is http, redis or postgres; HOST is the Host header of a request by name."""
    if kind == "http":
        return ask_http(address, port, host)
    return ask_redis(address, port) if kind == "redis" else ask_postgres(address, port)


def ask_http(address: str, port: int, host: str | None = None) -> Answer:
    """The page says `page NAME PORT`, or only `page NAME`; anything else is a page too."""
    connection = http.client.HTTPConnection(address, port, timeout=TIMEOUT)
    try:
        connection.request("GET", "/page", headers={"Host": host} if host else {})
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    own = re.search(r" (\d+)$", text)
    page = text[: own.start()] if own else text
    return {"status": answer.status, "page": page, "own_port": int(own[1]) if own else None}


def ask_redis(address: str, port: int) -> Answer:
    with socket.create_connection((address, port), TIMEOUT) as sock:
        sock.sendall(b"PING page\r\nCLIENT INFO\r\n")
        seen = b""
        while not (own := re.search(rb"laddr=\S+:(\d+) ", seen)):
            data = sock.recv(4096)
            if not data:
                break
            seen += data
    return {"page": "page redis" if b"page\r\n" in seen else repr(seen), "own_port": int(own[1]) if own else None}


def ask_postgres(address: str, port: int) -> Answer:
    place = f"host={address} port={port} user=tester dbname=postgres sslmode=disable connect_timeout={TIMEOUT}"
    query = "select 'page postgres', inet_server_port()"
    done = subprocess.run(
        ["psql", "-X", "-A", "-t", "-F", " ", "-d", place, "-c", query],
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * TIMEOUT,
    )
    words = done.stdout.split()
    if done.returncode != 0 or len(words) != 3:
        raise OSError(done.stderr.strip() or done.stdout)
    return {"page": " ".join(words[:2]), "own_port": int(words[2])}
