"""Requests a scope, a cgroup with limits, from a manager of systemd: one D-Bus call over its private socket.

Only what this call needs of the D-Bus protocol is here (dbus.freedesktop.org/doc/dbus-specification.html): numbers are
little-endian, every value is aligned to its own size, and structs to 8 bytes.
"""

from __future__ import annotations

import _socket
import os

from netsandbox.policy.limits import OWN_PROCESSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS = 10.0
MAX_REPLY = 1 << 16
METHOD_CALL, METHOD_RETURN, ERROR, SIGNAL = 1, 2, 3, 4
PATH, INTERFACE, MEMBER, DESTINATION, SIGNATURE = 1, 2, 3, 6, 8
MANAGER = "org.freedesktop.systemd1"


class Writer:
    """Values one after another, aligned from the beginning."""

    def __init__(self) -> None:
        self.data = bytearray()

    def align(self, size: int) -> None:
        self.data += bytes(-len(self.data) % size)

    def number(self, value: int, size: int = 4) -> None:
        self.align(size)
        self.data += value.to_bytes(size, "little")

    def text(self, value: str) -> None:
        data = value.encode()
        self.number(len(data))
        self.data += data + b"\0"

    def signature(self, value: str) -> None:
        self.data += bytes([len(value)]) + value.encode("ascii") + b"\0"

    def begin_array(self, alignment: int) -> int:
        self.number(0)
        at = len(self.data)
        self.align(alignment)
        return at

    def end_array(self, at: int, alignment: int) -> None:
        start = at + (-at % alignment)
        self.data[at - 4 : at] = (len(self.data) - start).to_bytes(4, "little")


def scope_call(unit: str, pid: int, limits: Mapping[str, int]) -> bytes:
    """StartTransientUnit for a scope that holds *pid* (pure; org.freedesktop.systemd1(5))."""
    properties: dict[str, int] = {}
    if "memory" in limits:
        properties |= {"MemoryMax": limits["memory"], "MemorySwapMax": 0}
    if "processes" in limits:
        properties["TasksMax"] = limits["processes"] + OWN_PROCESSES
    if "cpu" in limits:
        properties["CPUQuotaPerSecUSec"] = limits["cpu"] * 10_000
    body = Writer()
    body.text(unit)
    body.text("fail")
    array = body.begin_array(8)
    for name, value in properties.items():
        body.align(8)
        body.text(name)
        body.signature("t")
        body.number(value, 8)
    body.align(8)
    body.text("CollectMode")
    body.signature("s")
    body.text("inactive-or-failed")
    body.align(8)
    body.text("PIDs")
    body.signature("au")
    pids = body.begin_array(4)
    body.number(pid)
    body.end_array(pids, 4)
    body.end_array(array, 8)
    body.end_array(body.begin_array(8), 8)  # no auxiliary units
    return _header("StartTransientUnit", "ssa(sv)a(sa(sv))", len(body.data)) + bytes(body.data)


def _header(member: str, signature: str, length: int) -> bytes:
    made = Writer()
    made.data += b"l" + bytes([METHOD_CALL, 0, 1])
    made.number(length)
    made.number(1)  # our only message
    array = made.begin_array(8)
    fields = ((PATH, "o", "/org/freedesktop/systemd1"), (INTERFACE, "s", f"{MANAGER}.Manager"), (MEMBER, "s", member))
    for code, kind, value in (*fields, (DESTINATION, "s", MANAGER)):
        made.align(8)
        made.data.append(code)
        made.signature(kind)
        made.text(value)
    made.align(8)
    made.data.append(SIGNATURE)
    made.signature("g")
    made.signature(signature)
    made.end_array(array, 8)
    made.align(8)
    return bytes(made.data)


def reply_length(data: bytes) -> int | None:
    """The length of the message that *data* begins with; None if more is needed to know it."""
    if len(data) < 16:
        return None
    if data[:1] != b"l" or data[3] != 1:
        raise OSError("systemd answered something else than D-Bus")
    fields = int.from_bytes(data[12:16], "little")
    return 16 + fields + -fields % 8 + int.from_bytes(data[4:8], "little")


def check_reply(data: bytes) -> None:
    """OSError with systemd's own text, if *data* is not a return."""
    if data[1] == METHOD_RETURN:
        return
    body = data[len(data) - int.from_bytes(data[4:8], "little") :]
    text = body[4 : 4 + int.from_bytes(body[:4], "little")].decode("utf-8", "replace")
    raise OSError(f"systemd says {text!a}" if data[1] == ERROR else "systemd gave no answer")


def start_scope(path: str, unit: str, pid: int, limits: Mapping[str, int]) -> None:
    channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0)
    try:
        channel.settimeout(SECONDS)
        channel.connect(path)
        channel.sendall(b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\n")
        if not channel.recv(MAX_REPLY).startswith(b"OK "):
            raise OSError("systemd refused us")
        channel.sendall(b"BEGIN\r\n" + scope_call(unit, pid, limits))
        data = b""
        while True:
            while (length := reply_length(data)) is None or len(data) < length:
                part = channel.recv(MAX_REPLY)
                if not part or len(data) > MAX_REPLY:
                    raise OSError("systemd closed the connection")
                data += part
            if data[1] != SIGNAL:  # it tells of units as it likes
                check_reply(data[:length])
                return
            data = data[length:]
    finally:
        channel.close()
