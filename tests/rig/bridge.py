"""The way over protected programs (interpose/src/bridge.c), called alone: arguments in, arguments out."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

PRELOAD, MAP = b"LD_PRELOAD=/opt/lib netsandbox.so", b"NETSANDBOX_PORT_MAP=/run/$map `x`"
UNITS = ("bridge.c", "shell.c", "env.c", "target.c")


class Injection(ctypes.Structure):
    _fields_ = (("preload", ctypes.c_char * 1024), ("map", ctypes.c_char * 1024))


class Measures(ctypes.Structure):
    _fields_ = (
        ("injection", ctypes.POINTER(Injection)),
        ("environment", ctypes.POINTER(ctypes.c_char_p)),
        ("moves", ctypes.c_int),
        ("pointers", ctypes.c_size_t),
        ("bytes", ctypes.c_size_t),
    )


class Bridge:
    """Compiled for this system, as if it were a Mac."""

    def __init__(self, compiler: str, sources: Path, folder: Path) -> None:
        product = folder / "bridge.so"
        flags = ["-D_GNU_SOURCE", "-DNS_BRIDGE", "-std=gnu11", "-O1", "-g", "-fPIC", "-shared", "-Wall", "-Werror"]
        subprocess.run([compiler, *flags, *(str(sources / unit) for unit in UNITS), "-o", product], check=True)
        self._library = ctypes.CDLL(str(product), use_errno=True)
        self._library.ns_bridge_build.restype = ctypes.c_char_p

    def rewrite(
        self,
        path: bytes,
        arguments: Sequence[bytes],
        environment: Sequence[bytes] = (),
        *,
        preload: bytes = PRELOAD,
        port_map: bytes = MAP,
        moves: bool = False,
    ) -> tuple[bytes, list[bytes]] | None:
        """What is started instead; None: nothing else is."""
        injection = Injection(preload, port_map)
        measures = Measures(ctypes.pointer(injection), _vector(environment), moves)
        given = _vector(arguments)
        if not self._library.ns_bridge_measure(ctypes.byref(measures), path, given):
            return None
        room = (ctypes.c_char_p * (measures.pointers + 1))()
        room[measures.pointers] = canary = b"canary"
        text = ctypes.create_string_buffer(b"\xee" * (measures.bytes + 8), measures.bytes + 8)
        ctypes.set_errno(77)
        target = self._library.ns_bridge_build(ctypes.byref(measures), path, given, room, text)
        assert ctypes.get_errno() == 77
        assert (room[measures.pointers], text.raw[-8:]) == (canary, b"\xee" * 8), "written beyond the room"
        assert [*given][:-1] == [*arguments], "the caller's own list was changed"
        if target is None:
            return None
        made = [*room]
        return target, [word for word in made[: made.index(None)] if word is not None]


def _vector(values: Sequence[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * (len(values) + 1))(*values, None)
