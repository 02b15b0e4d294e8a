"""Enough of HTTP/1.1 for a canary: requests with a length, one after another, answers with a length."""

from __future__ import annotations

import socket
from collections.abc import Callable

Headers = dict[str, str]
Responder = Callable[[str, str, Headers, bytes], tuple[int, Headers, bytes]]


def serve_http(stream: socket.socket, kept: bytearray, respond: Responder) -> None:
    """Answers requests until the client leaves or asks to close; all bytes read are added to KEPT."""
    pending = b""
    while True:
        while b"\r\n\r\n" not in pending:
            data = stream.recv(65536)
            if not data:
                return
            kept += data
            pending += data
        head, _, pending = pending.partition(b"\r\n\r\n")
        method, target, headers = _parse(head)
        length = int(headers.get("content-length", "0"))
        while len(pending) < length:
            data = stream.recv(65536)
            if not data:
                return
            kept += data
            pending += data
        body, pending = pending[:length], pending[length:]
        stream.sendall(_render(method, *respond(method, target, headers, body)))
        if headers.get("connection", "").lower() == "close":
            return


def _parse(head: bytes) -> tuple[str, str, Headers]:
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    fields = (line.partition(":") for line in lines)
    return method, target, {name.strip().lower(): value.strip() for name, _, value in fields}


def _render(method: str, status: int, headers: Headers, body: bytes) -> bytes:
    lines = [f"HTTP/1.1 {status} Canary", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
    return head if method == "HEAD" else head + body
