"""What the backend needs from the system it runs on, in one value: from macOS, or from a test on another system.

The module also has the notification of a process's end as a descriptor that a loop can watch, and the macOS version by
its kernel's number, since uname(3) is cheap and no variable changes it.
"""

from __future__ import annotations

import os
import select

from netsandbox_interpose.library import LIBRARY

from netsandbox.errors import HostError
from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from netsandbox.policy.ip import Address
    from netsandbox.runtime.loop import Loop

    Clock = Callable[[], float]
    from typing import Any, Protocol

    class ExitNotice(Protocol):
        def fileno(self) -> int: ...
        def close(self) -> None: ...


APPLY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "native", "netsandbox-apply")


@frozen
class MacSystem:
    """Paths of programs and files, and how to wait."""

    helper: str  # applies the profile and becomes the command
    open_loop: Callable[[Callable[[BaseException], None]], Loop]
    exit_of: Callable[[int], ExitNotice]
    own_addresses: Callable[[Clock], Callable[[], Collection[Address]]]
    log: str = ""  # prints the kernel's refusals; empty: none are available
    release: str = ""  # the kernel's version
    library: str = LIBRARY  # the preload library
    unsigned: str = ""  # why helper and library are not locally signed copies; empty: they are


def this_mac() -> MacSystem:
    """This host's values. Native files are signed locally first, if they were not before."""
    from netsandbox.backends.seatbelt.mac_system import KqueueExit
    from netsandbox.backends.seatbelt.own_addresses import InterfaceAddresses
    from netsandbox.backends.seatbelt.profile.violations import LOG
    from netsandbox.backends.seatbelt.signing import load_module, signed_parts
    from netsandbox.runtime.kqueue_loop import KqueueLoop

    parts = signed_parts()
    load_module(parts.module)
    release = os.uname().release
    return MacSystem(
        parts.helper,
        KqueueLoop,
        KqueueExit,
        InterfaceAddresses,
        LOG,
        release=release,
        library=parts.library,
        unsigned=parts.unsigned,
    )


FILTER_PROCESS, ADD, ONCE, AT_EXIT = -5, 0x0001, 0x0010, 0x80000000  # EVFILT_PROC, EV_ADD, EV_ONESHOT, NOTE_EXIT


class KqueueExit:
    """A separate kqueue, which another one can watch. The process must not have been reaped."""

    def __init__(self, pid: int) -> None:
        module: Any = select  # its names exist only on macOS
        self._queue = module.kqueue()
        try:
            self._queue.control([module.kevent(pid, FILTER_PROCESS, ADD | ONCE, AT_EXIT)], 0, 0)
        except ProcessLookupError:  # it has ended already: use an event that is always ready
            self._reader, writer = os.pipe()
            os.close(writer)
            self._queue.close()
        else:
            self._reader = -1
        self._open = True

    def fileno(self) -> int:
        return self._reader if self._reader >= 0 else int(self._queue.fileno())

    def close(self) -> None:
        if not self._open:
            return
        self._open = False
        if self._reader >= 0:
            os.close(self._reader)
        else:
            self._queue.close()


LEAST_DARWIN = 20  # macOS 11


def macos_version(darwin: str) -> str | None:
    """The macOS with the kernel release *darwin*, such as 24 for 24.6.0; None if it is not such a number."""
    major = darwin.partition(".")[0]
    if not (major.isascii() and major.isdigit() and len(major) < 4):
        return None
    number = int(major)
    if number < LEAST_DARWIN:
        return f"10.{number - 4}" if number > 4 else None
    return str(number - 9 if number < 25 else number + 1)  # macOS 26 follows 15


def check_release(darwin: str) -> None:
    """Raise an error for a macOS that is too old. A newer, unknown one may work: the profile is tested in any case."""
    version = macos_version(darwin)
    if version is not None and version.startswith("10."):
        raise HostError(f"this is macOS {version}, and a session needs macOS 11 or newer; nothing was run")
