"""What the backend asks of the system it runs on, in one value: a Mac's answers, or a test's on another system."""

from __future__ import annotations

import os

from netsandbox_interpose.library import LIBRARY

from netsandbox.macos.sandbox_exec import SANDBOX_EXEC
from netsandbox.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from netsandbox.loop import Loop
    from netsandbox.macos.exit_notice import ExitNotice
    from netsandbox.policy.ip import Address

    Clock = Callable[[], float]

APPLY = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "native_macos", "netsandbox-apply")


@record
class System:
    """Programs and files by their paths, and how to wait."""

    helper: str  # applies the profile and becomes the command
    open_loop: Callable[[Callable[[BaseException], None]], Loop]
    exit_of: Callable[[int], ExitNotice]
    own_addresses: Callable[[Clock], Callable[[], Collection[Address]]]
    log: str = ""  # tells what the kernel refused; empty: nothing does
    sandbox_exec: str = SANDBOX_EXEC  # stands in for the helper
    release: str = ""  # of the kernel
    library: str = LIBRARY  # to be preloaded
    unsigned: str = ""  # why helper and library are not copies that this Mac signed; empty: they are


def this_mac() -> System:
    """What is native is signed by this Mac first, if it was not before."""
    from netsandbox.kqueue_loop import KqueueLoop
    from netsandbox.macos.exit_notice import KqueueExit
    from netsandbox.macos.own_addresses import InterfaceAddresses
    from netsandbox.macos.signed import load_module, signed_parts
    from netsandbox.seatbelt.violations import LOG

    parts = signed_parts()
    load_module(parts.module)
    release = os.uname().release
    return System(
        parts.helper,
        KqueueLoop,
        KqueueExit,
        InterfaceAddresses,
        LOG,
        release=release,
        library=parts.library,
        unsigned=parts.unsigned,
    )
