"""Attempts over UDP, and DNS questions to any server by UDP or TCP."""

from __future__ import annotations

import os
import socket

from netsandbox.doctor.inside.prevented import Prevented

SECONDS = 0.5
CODES = {0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED"}
RECURSION_DESIRED = 0x0100


def udp(host: str, port: int, family: int = socket.AF_INET) -> str:
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.settimeout(0.2)
        sender.sendto(b"probe", (host, port))
        try:
            return f"answered {sender.recv(512)!a}"
        except TimeoutError:
            raise Prevented("sent, no answer") from None


def ask(server: str, port: int, name: str, kind: int = 1, *, tcp: bool = False) -> str:
    """One question; an answer of any kind but NOERROR with records achieves nothing."""
    query = question(name, kind)
    try:
        reply = _by_tcp(server, port, query) if tcp else _by_udp(server, port, query)
    except TimeoutError:
        raise Prevented("no answer") from None
    if len(reply) < 12 or reply[:2] != query[:2]:
        raise Prevented("no answer")
    code = CODES.get(reply[3] & 15, str(reply[3] & 15))
    records = int.from_bytes(reply[6:8], "big")
    if code != "NOERROR" or not records:
        raise Prevented(code if code != "NOERROR" else "NOERROR without a record")
    return f"{records} records"


def lookup(name: str) -> str:
    """As any program looks a name up, by whatever the system has for it."""
    try:
        found = socket.getaddrinfo(name, 80, socket.AF_INET, socket.SOCK_STREAM)
    except socket.gaierror as error:  # its numbers are not those of errno
        raise Prevented(error.strerror or "not found") from None
    return f"found {found[0][4][0]}"


def question(name: str, kind: int) -> bytes:
    labels = b"".join(bytes([len(label)]) + label for label in name.encode("ascii").split(b"."))
    header = os.urandom(2) + RECURSION_DESIRED.to_bytes(2, "big") + b"\0\1\0\0\0\0\0\0"
    return header + labels + b"\0" + kind.to_bytes(2, "big") + b"\0\1"


def _by_udp(server: str, port: int, query: bytes) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.settimeout(SECONDS)
        sender.sendto(query, (server, port))
        return sender.recv(4096)


def _by_tcp(server: str, port: int, query: bytes) -> bytes:
    with socket.create_connection((server, port), timeout=SECONDS) as stream:
        stream.sendall(len(query).to_bytes(2, "big") + query)
        data = b""
        while len(data) < 2 or len(data) < 2 + int.from_bytes(data[:2], "big"):
            piece = stream.recv(4096)
            if not piece:
                break
            data += piece
        return data[2:]
