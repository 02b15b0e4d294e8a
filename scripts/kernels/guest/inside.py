"""Runs in the session: inside.py ALLOWED:PORT DENIED:PORT HOST:PORT NAME

Prints what it got from each, and exits with 7.
"""

from __future__ import annotations

import json
import socket
import sys
from http.client import HTTPConnection, HTTPException


def fetch(place: str) -> str:
    try:
        connection = HTTPConnection(place, timeout=60)
        connection.request("GET", "/")
        return connection.getresponse().read().decode("utf-8", "replace")
    except (OSError, HTTPException) as error:
        return f"{type(error).__name__}: {error}"


def look_up(name: str) -> str:
    try:
        return str(socket.getaddrinfo(name, 80))
    except socket.gaierror:
        return "unknown"


if __name__ == "__main__":
    allowed, denied, host, name = sys.argv[1:]
    seen = {"allowed": fetch(allowed), "denied": fetch(denied), "host": fetch(host), "name": look_up(name)}
    print(json.dumps(seen))
    sys.exit(7)
