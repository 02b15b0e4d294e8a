"""The addresses of the host at which a listener of the session appears. Pure: numbers in, addresses out.

Every address is a loopback address (INV-7); nothing of a session is offered to a network. A port of None means "any of
the window". The addresses of one listener that have None share one number, so that `localhost` means the same by IPv4
and by IPv6.
"""

from __future__ import annotations

from netsandbox_portmap import FAIL, REWIRE_DEVICE
from netsandbox_portmap.window import LOCALHOST_IPV4

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

LOCALHOST = (LOCALHOST_IPV4, "::1")

Face = tuple[str, "int | None"]


class HasDevice(Protocol):
    """The part of a window that is used here."""

    @property
    def device(self) -> str:
        """The session's address in 127/8."""


def faces(
    strategy: str, requested_port: int, window: HasDevice, *, device_given: bool, host_port: int | None = None
) -> tuple[Face, ...]:
    """The addresses for a listener that requested *requested_port*; *host_port* is the fixed port of `--publish`."""
    device = window.device
    if strategy == REWIRE_DEVICE:
        return ((device, host_port or requested_port),)
    if strategy == FAIL:
        addresses = (device,) if device_given else LOCALHOST
        return tuple((address, host_port or requested_port) for address in addresses)
    shared = tuple((address, host_port) for address in LOCALHOST)
    # The kernel lets no program bind a port on all addresses (0.0.0.0) if one of them has it. So a port that the
    # command chose is taken from the host's programs only if the user requested it.
    return (*shared, (device, requested_port)) if device_given else shared  # rewire-port takes no device


def dial_address(address: str) -> str | None:
    """The address at which a listener inside is reached; None if it listens on neither loopback nor every address.

    A mapped address (::ffff:127.0.0.1) is an IPv4 listener that uses an IPv6 socket.
    """
    bare = address.removeprefix("::ffff:")
    if bare == "0.0.0.0":  # noqa: S104 (read, never bound)
        return LOCALHOST_IPV4
    if bare.startswith("127."):
        return bare
    return "::1" if address in ("::", "::1") else None
