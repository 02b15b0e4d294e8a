"""Parses and writes the kernel's socket addresses (pure; ip(7), ipv6(7))."""

from __future__ import annotations

import sys
from _socket import AF_INET, AF_INET6, inet_ntop, inet_pton

AF_UNSPEC = 0  # for bind(2) of an IPv4 socket, Linux treats it as AF_INET
MAPPED = bytes(10) + b"\xff\xff"
SHORTEST = {AF_INET: 16, AF_INET6: 24}


def read_endpoint(family: int, data: bytes) -> tuple[str, int] | None:
    """Address and port as a socket of *family* interprets them; None if the kernel will refuse them.

    IPv6 loopback, wildcard and mapped addresses become their IPv4 equivalents, so that one rule covers them all.
    """
    if len(data) < SHORTEST[family]:
        return None
    family_there = int.from_bytes(data[:2], sys.byteorder)
    port = int.from_bytes(data[2:4], "big")
    if family == AF_INET and family_there in (AF_INET, AF_UNSPEC):
        return inet_ntop(AF_INET, data[4:8]), port
    if family == AF_INET6 and family_there == AF_INET6:
        return as_ipv4(data[8:24]), port
    return None


def as_ipv4(packed: bytes) -> str:
    if packed == bytes(16):
        return "0.0.0.0"  # noqa: S104 (a name for the wildcard, not a bind)
    if packed == bytes(15) + b"\x01":
        return "127.0.0.1"
    if packed.startswith(MAPPED):
        return inet_ntop(AF_INET, packed[12:])
    return inet_ntop(AF_INET6, packed)


def written(family: int, address: str, port: int) -> bytes:
    """The bytes for an address of that family."""
    rest = inet_pton(family, address)
    body = rest + bytes(8) if family == AF_INET else bytes(4) + rest + bytes(4)
    return family.to_bytes(2, sys.byteorder) + port.to_bytes(2, "big") + body


def with_port(data: bytes, port: int) -> bytes:
    """The same address with another port."""
    return data[:2] + port.to_bytes(2, "big") + data[4:]
