"""The way over protected programs (interpose/src/shell_bridge.c), called alone: arguments in, arguments out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PRELOAD, MAP = b"LD_PRELOAD=/opt/lib netsandbox.so", b"NETSANDBOX_PORT_MAP=/run/$map `x`"
ERROR = 77


class Bridge:
    """As the module for Python has it, on this system as on a Mac."""

    def __init__(self) -> None:
        from netsandbox_interpose._native import ffi, lib

        self._ffi, self._lib = ffi, lib

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
        ffi, lib = self._ffi, self._lib
        (given, _kept), (there, _also) = self._vector(arguments), self._vector(environment)
        injection = ffi.new("struct ns_injection *", {"preload": preload, "map": port_map})
        bridge = ffi.new("struct ns_bridge *", {"injection": injection, "environment": there, "moves": moves})
        if not lib.ns_bridge_measure(bridge, path, given):
            return None
        room, text = ffi.new("char *[]", bridge.pointers + 1), ffi.new("char[]", bridge.bytes + 8)
        room[bridge.pointers] = canary = ffi.cast("char *", 0xEE)
        ffi.buffer(text)[-8:] = b"\xee" * 8
        before, ffi.errno = list(given), ERROR
        target = lib.ns_bridge_build(bridge, path, given, room, text)
        assert ffi.errno == ERROR
        assert (room[bridge.pointers], ffi.buffer(text)[-8:]) == (canary, b"\xee" * 8), "written beyond the room"
        assert list(given) == before, "the caller's own list was changed"
        if target == ffi.NULL:
            return None
        return ffi.string(target), [ffi.string(word) for word in list(room)[: list(room).index(ffi.NULL)]]

    def _vector(self, values: Sequence[bytes]) -> tuple[Any, list[Any]]:
        """A list of C, and what it points to."""
        kept = [self._ffi.new("char[]", value) for value in values]
        return self._ffi.new("char *[]", [*kept, self._ffi.NULL]), kept
