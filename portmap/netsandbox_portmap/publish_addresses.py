"""Where a listener of the session appears on the host. Pure: numbers in, addresses out.

Every face is a loopback address (INV-7): nothing of a session is ever offered to a network. A port of None stands for
"one of the window"; the faces of one listener that have None share the same number, so that `localhost` means one
thing by IPv4 and by IPv6.
"""

from __future__ import annotations

from netsandbox_portmap.strategies import FAIL, REWIRE_DEVICE
from netsandbox_portmap.window import LOCALHOST_IPV4

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

LOCALHOST = (LOCALHOST_IPV4, "::1")

Face = tuple[str, "int | None"]


class Place(Protocol):
    """What is asked of a window here."""

    @property
    def device(self) -> str:
        """The session's own address of 127/8."""


def faces(
    strategy: str, asked_port: int, window: Place, *, device_given: bool, host_port: int | None = None
) -> tuple[Face, ...]:
    """The places for a listener that asked for *asked_port*; *host_port* is the fixed number of `--publish`."""
    device = window.device
    if strategy == REWIRE_DEVICE:
        return ((device, host_port or asked_port),)
    if strategy == FAIL:
        addresses = (device,) if device_given else LOCALHOST
        return tuple((address, host_port or asked_port) for address in addresses)
    shared = tuple((address, host_port) for address in LOCALHOST)
    # The kernel lets nobody have a port on all addresses (0.0.0.0) that one of them has. So the port that a command
    # chose is taken from the host's own programs only where the user asked for it.
    return (*shared, (device, asked_port)) if device_given else shared  # rewire-port takes no device


def dial_address(address: str) -> str | None:
    """Where a listener inside is reached; None when it is for neither loopback nor every address.

    A mapped address (::ffff:127.0.0.1) is an IPv4 listener that uses an IPv6 socket.
    """
    bare = address.removeprefix("::ffff:")
    if bare == "0.0.0.0":  # noqa: S104 (read, never bound)
        return LOCALHOST_IPV4
    if bare.startswith("127."):
        return bare
    return "::1" if address in ("::", "::1") else None
