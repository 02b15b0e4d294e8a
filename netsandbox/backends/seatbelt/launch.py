"""What is needed to start the command on macOS: whether our helper and library can be used, and the words to start.

dyld keeps the preload library out of the system's own shells and env. If a command begins with one of them, the
library's own code (interpose/src/shell_bridge.c) adds the library's variables to its arguments.
"""

from __future__ import annotations

import errno
import os
import shutil

from netsandbox_interpose.library import PORT_MAP_VARIABLE, PRELOAD

from netsandbox.backends.seatbelt.spawn import spawn
from netsandbox.errors import HostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BAD_ARCHITECTURE = 86  # EBADARCH of Darwin
ANSWERS = (125, 126)  # exit statuses of netsandbox-apply without arguments
NAME = "the helper netsandbox-apply"


def check_helper(path: str) -> None:
    """Raise an error if the helper cannot be started, before anything is set up."""
    trouble = helper_trouble(path)
    if trouble:
        raise HostError(f"{trouble}, and nothing is run without it; reinstall netsandbox")


def library_trouble(path: str) -> str:
    """Why the session has no preload library; empty if it has one."""
    return "" if os.path.exists(path) else f"the preload library {path} is missing"


def helper_trouble(path: str) -> str:
    """Why the helper cannot be started, found by a start without arguments; empty if it can."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        pid = spawn(path, (), (nothing, nothing, nothing))
    except OSError as error:
        return _not_started(error.errno or 0)
    finally:
        os.close(nothing)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status < 0:
        return f"{NAME} was killed by signal {-status}, as macOS does when it does not trust a signature"
    return "" if status in ANSWERS else f"{NAME} does not answer as ours does"


def _not_started(number: int) -> str:
    if number == errno.ENOENT:
        return f"{NAME} is missing"
    if number in (errno.ENOEXEC, BAD_ARCHITECTURE):
        return f"{NAME} is built for another processor"
    return f"{NAME} cannot be started ({os.strerror(number)})"


MAX_BYTES = 1023  # struct ns_injection


def handed_on(command: Sequence[str], environment: Mapping[bytes, bytes]) -> list[str]:
    """The words to start: *command*, changed if it begins with such a program and the library is in *environment*."""
    entry, _, _ = environment.get(PRELOAD, b"").partition(b":")
    preload, port_map = PRELOAD + b"=" + entry, PORT_MAP_VARIABLE + b"=" + environment.get(PORT_MAP_VARIABLE, b"")
    path = shutil.which(command[0], path=os.fsdecode(environment.get(b"PATH", b"")))
    if (
        not entry
        or PORT_MAP_VARIABLE not in environment
        or path is None
        or max(len(preload), len(port_map)) > MAX_BYTES
    ):
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
