"""Runs inside a session, copied there: opens and closes servers at a word from outside. Standard library only.

A line of JSON `[op, word…]` on stdin, a line of JSON back on stdout. Its servers speak HTTP: any path gives the page,
`/events` a stream of what `tick` says, `/echo` whatever follows the head, and an Upgrade a WebSocket that echoes.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import socket
import sys
import threading
import time
from typing import Any

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "

page = "page"
servers: dict[int, socket.socket] = {}
streams: list[socket.socket] = []
clients: list[socket.socket] = []


def name(text: str) -> dict[str, Any]:
    """What the page says from now on."""
    global page
    page = text
    return {}


def listen(address: str, port: int, only_v6: bool | None = None) -> dict[str, Any]:
    """AT is the moment after listen() came back, by the clock that the host has too."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if only_v6 is not None:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only_v6)
    sock.bind((address, port))
    sock.listen(64)
    at = time.monotonic_ns()
    own = sock.getsockname()[1]
    servers[own] = sock
    threading.Thread(target=accept, args=(sock,), daemon=True).start()
    return {"port": own, "at": at, "pid": os.getpid()}


def close(port: int) -> dict[str, Any]:
    sock = servers.pop(port)
    sock.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept
    sock.close()
    return {}


def tick(text: str) -> dict[str, Any]:
    for stream in streams:
        stream.sendall(f"data: {text}\n\n".encode())
    return {"streams": len(streams)}


def connect(address: str, port: int, data: str = "") -> dict[str, Any]:
    """What a server says to DATA."""
    with socket.create_connection((address, port), 10) as sock:
        sock.sendall(data.encode())
        sock.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := sock.recv(65536):
            answer += piece
    return {"answer": answer.decode("latin-1")}


def count() -> dict[str, Any]:
    """How many clients have come."""
    return {"clients": len(clients)}


def environment() -> dict[str, Any]:
    return {key: value for key, value in os.environ.items() if key.startswith("LISTENING_")}


def accept(listener: socket.socket) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        clients.append(client)
        threading.Thread(target=serve, args=(client,), daemon=True).start()


def serve(client: socket.socket) -> None:
    with client.makefile("rb") as reader:
        while lines := head(reader):
            target, fields = lines[0].split()[1], dict(line.lower().split(b": ", 1) for line in lines[1:])
            if fields.get(b"upgrade") == b"websocket":
                key = next(line[19:] for line in lines if line.lower().startswith(b"sec-websocket-key: "))
                echo(client, reader, key)
                return
            if target == b"/echo":
                while data := reader.read1(65536):
                    client.sendall(data)
                client.shutdown(socket.SHUT_WR)
                return
            if target == b"/events":
                streams.append(client)  # before the head is seen, after which `tick` may come
                client.sendall(STREAM)
                reader.read()
                return
            body = f"{page} {client.getsockname()[1]}".encode()
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    client.close()


def head(reader: Any) -> list[bytes]:
    lines = []
    while line := reader.readline().rstrip(b"\r\n"):
        lines.append(line)
    return lines


def echo(client: socket.socket, reader: Any, key: bytes) -> None:
    """RFC 6455, short text frames only: from the client masked, back to it not."""
    proof = base64.b64encode(hashlib.sha1(key + GUID).digest())
    client.sendall(SWITCH + proof + b"\r\n\r\n")
    while start := reader.read(2):
        size = start[1] & 0x7F
        mask, data = reader.read(4), reader.read(size)
        client.sendall(start[:1] + bytes([size]) + bytes(byte ^ mask[at % 4] for at, byte in enumerate(data)))
    client.close()


OPS = {op.__name__: op for op in (name, listen, close, tick, connect, count, environment)}


def main() -> None:
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        op, *words = json.loads(line)
        try:
            answer = OPS[op](*words)
        except OSError as error:
            answer = {"error": errno.errorcode.get(error.errno or 0, str(error))}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
