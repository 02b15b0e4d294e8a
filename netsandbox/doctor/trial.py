"""Trying a kernel feature in a process of its own, so that the doctor's own process stays as it was."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_USER, NEW_NETWORK, NEW_MOUNTS, NEW_PROCESSES = 0x10000000, 0x40000000, 0x00020000, 0x20000000
STRANGE = 255  # the action failed in a way that has no error number


def trial(action: Callable[[], None]) -> int:
    """Run *action* in a child: 0 when it returned, else the number of its OSError."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
        except OSError as error:
            os._exit(error.errno or STRANGE)
        except BaseException:
            os._exit(STRANGE)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def enter_namespaces(flags: int) -> None:
    """Become oneself in new namespaces; the same identity, mapped, as a session has it."""
    uid, gid = os.geteuid(), os.getegid()
    checked(LIBC.unshare(flags))
    for file, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{file}", "w") as map_file:
            map_file.write(text)


def checked(result: int) -> int:
    """*result* of a libc call, or its error."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
