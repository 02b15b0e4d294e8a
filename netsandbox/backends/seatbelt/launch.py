"""How the command is started on macOS: by our helper, or by the system's sandbox-exec if the helper cannot run.

This is decided before anything else is set up, since sandbox-exec comes without the preload library. sandbox-exec
replaces only a helper that does not start at all; a profile that is rejected or does not hold ends the run in either
case.

dyld keeps the preload library out of the system's own shells and env. If a command begins with one of them, the
library's own code (interpose/src/shell_bridge.c) adds the library's variables to its arguments.
"""

from __future__ import annotations

import errno
import os
import shutil

from netsandbox_interpose.library import PORT_MAP_VARIABLE, PRELOAD

from netsandbox.backends.seatbelt.helper_process import HelperProcess
from netsandbox.backends.seatbelt.spawn import spawn
from netsandbox.errors import HostError
from netsandbox.frozen import frozen
from netsandbox.policy.file_rules import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from netsandbox.backends.seatbelt.mac_system import MacSystem
    from netsandbox.settings import Command

BAD_ARCHITECTURE = 86  # EBADARCH of Darwin
ANSWERS = (125, 126)  # exit statuses of netsandbox-apply without arguments
NAME = "the helper netsandbox-apply"


@frozen
class LaunchMethod:
    """`trouble` states why the helper is not used."""

    program: str
    applied: type[HelperProcess]
    runs: tuple[str, ...] = ()  # programs that the profile must allow besides the command
    trouble: str = ""

    @property
    def injects(self) -> bool:
        """Whether the preload library can be used."""
        return not self.trouble

    def start(self, command: Command, profile: str, *, closed_port: int) -> HelperProcess:
        words = handed_on(command.words, command.environment) if self.injects else command.words
        return self.applied(self.program, words, profile, command.environment, command.stdio, closed_port=closed_port)


def launch_method(system: MacSystem) -> LaunchMethod:
    """The helper if it runs; otherwise sandbox-exec if it exists."""
    trouble = helper_trouble(system.helper)
    if not trouble:
        return LaunchMethod(system.helper, HelperProcess)
    if not os.access(system.sandbox_exec, os.X_OK):
        raise HostError(f"{trouble}, and there is no {system.sandbox_exec} in its place; reinstall netsandbox")
    from netsandbox.backends.seatbelt.sandbox_exec import SandboxExec, interpreter_paths

    return LaunchMethod(system.sandbox_exec, SandboxExec, interpreter_paths(), trouble)


def check_readable_paths(way: LaunchMethod, home: str) -> None:
    """Programs that run inside besides the command become readable, which must not open the whole home directory."""
    for place in way.runs:
        if is_within(os.path.realpath(home), place):
            raise HostError(
                f"{way.trouble}, and Python, which would stand in, is installed in {place!a} above your home directory;"
                " reinstall netsandbox"
            )


def library_trouble(system: MacSystem, way: LaunchMethod) -> str:
    """Why the session has no preload library; empty if it has one."""
    if way.trouble or os.path.exists(system.library):
        return way.trouble
    return f"the preload library {system.library} is missing"


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
