"""A command that begins with a shell or env of the system, which dyld keeps the preload library out of, is rewritten so
that it sets the variables again. The library's own code does it (interpose/src/shell_bridge.c), since the helper that
starts the command has no library."""

from __future__ import annotations

import os
import shutil

from netsandbox_interpose.library import PORT_MAP_VARIABLE, PRELOAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LONGEST = 1023  # struct ns_injection


def handed_on(command: Sequence[str], environment: Mapping[bytes, bytes]) -> list[str]:
    """What to start: *command* itself, unless it is such a one and the library is in *environment*."""
    entry, _, _ = environment.get(PRELOAD, b"").partition(b":")
    preload, port_map = PRELOAD + b"=" + entry, PORT_MAP_VARIABLE + b"=" + environment.get(PORT_MAP_VARIABLE, b"")
    path = shutil.which(command[0], path=os.fsdecode(environment.get(b"PATH", b"")))
    if not entry or PORT_MAP_VARIABLE not in environment or path is None or max(len(preload), len(port_map)) > LONGEST:
        return [*command]
    words = _rewritten(os.fsencode(path), [os.fsencode(word) for word in command], preload, port_map, environment)
    return [*command] if words is None else [os.fsdecode(word) for word in words]


def _rewritten(
    path: bytes, words: list[bytes], preload: bytes, port_map: bytes, environment: Mapping[bytes, bytes]
) -> list[bytes] | None:
    from netsandbox_interpose._native import ffi, lib

    given = [ffi.new("char[]", word) for word in words]
    variables = [ffi.new("char[]", b"%s=%s" % pair) for pair in environment.items()]
    arguments, there = ffi.new("char *[]", [*given, ffi.NULL]), ffi.new("char *[]", [*variables, ffi.NULL])
    injection = ffi.new("struct ns_injection *", {"preload": preload, "map": port_map})
    bridge = ffi.new("struct ns_bridge *", {"injection": injection, "environment": there})
    if not lib.ns_bridge_measure(bridge, path, arguments):
        return None
    room, text = ffi.new("char *[]", bridge.pointers), ffi.new("char[]", bridge.bytes)
    if lib.ns_bridge_build(bridge, path, arguments, room, text) == ffi.NULL:
        return None
    return [ffi.string(word) for word in ffi.unpack(room, list(room).index(ffi.NULL))]
