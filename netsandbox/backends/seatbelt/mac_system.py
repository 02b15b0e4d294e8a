"""What the backend asks of the system it runs on, in one value: a Mac's answers, or a test's on another system."""

from __future__ import annotations

import os

from netsandbox_interpose.library import LIBRARY

from netsandbox.backends.seatbelt.sandbox_exec import SANDBOX_EXEC
from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from netsandbox.backends.seatbelt.exit_watch import ExitNotice
    from netsandbox.policy.ip import Address
    from netsandbox.runtime.loop import Loop

    Clock = Callable[[], float]

APPLY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "native", "netsandbox-apply")


@frozen
class MacSystem:
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


def this_mac() -> MacSystem:
    """What is native is signed by this Mac first, if it was not before."""
    from netsandbox.backends.seatbelt.exit_watch import KqueueExit
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
