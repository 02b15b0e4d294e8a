"""A port map for the emulated library, and addresses in the form of either system."""

from __future__ import annotations

import socket
import struct
from typing import Any

from netsandbox_interpose._native import ffi, lib

from tests.rig import darwin

BASE, COUNT, DEVICE, DOOR, TOKEN = 31000, 50, "127.80.1.1", 1011, bytes(range(16))
LINUX_FAMILY = {16: socket.AF_INET, 28: socket.AF_INET6}


def table(strategy: int, device: str, /, **fields: int) -> Any:
    """A sound map without doors for elsewhere; port 3000 has slot 7, and 53 and 3128 pass."""
    made = ffi.new("struct ns_map *")
    made.magic, made.version, made.size = lib.NS_MAP_MAGIC, lib.NS_MAP_VERSION, ffi.sizeof("struct ns_map")
    made.strategy, made.base, made.count, made.door = strategy, BASE, COUNT, DOOR
    made.device, made.token = list(socket.inet_aton(device)), list(TOKEN)
    made.passing_count, made.passing[0], made.passing[1] = 2, 53, 3128
    made.requested[7], made.window[3000] = 3000, BASE + 7
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def content(made: Any) -> bytes:
    return bytes(ffi.buffer(made))


def for_linux(name: bytes) -> bytes:
    return struct.pack("=H", LINUX_FAMILY[len(name)]) + name[2:]


def for_darwin(name: bytes) -> bytes:
    return struct.pack("BB", len(name), darwin.AF_INET if len(name) == 16 else darwin.AF_INET6) + name[2:]
