"""What the command may inherit as its standard descriptors.

A socket keeps the network namespace it was made in. An internet socket of the host's network on descriptor 0 (inetd,
socket activation) could be disconnected and connected anywhere, past every door, so only sockets that cannot be aimed
again are passed on: connected unix stream and seqpacket sockets, which is what runtimes use in place of pipes.
"""

from __future__ import annotations

import _socket
import os
import stat

from netsandbox.errors import HostError

HARMLESS = (_socket.SOCK_STREAM, _socket.SOCK_SEQPACKET)
NAMES = ("standard input", "standard output", "standard error")


def check_stdio(descriptors: tuple[int, int, int]) -> None:
    """Refuse to start with a descriptor that leads out (attack 132)."""
    for name, descriptor in zip(NAMES, descriptors, strict=True):
        try:
            mode = os.fstat(descriptor).st_mode
        except OSError as error:
            raise HostError(f"{name} is not open: {error.strerror}; redirect it, for instance to /dev/null") from None
        if stat.S_ISDIR(mode):
            raise HostError(f"{name} is a directory, through which the command could see past its view; use a file")
        if stat.S_ISSOCK(mode) and not _is_harmless(descriptor):
            raise HostError(
                f"{name} is a socket of the host's network, which the command could use to leave the sandbox; "
                "put a pipe between, such as `… | cat`"
            )


def _is_harmless(descriptor: int) -> bool:
    sock = _socket.socket(fileno=os.dup(descriptor))
    try:
        if sock.family != _socket.AF_UNIX or sock.type not in HARMLESS:
            return False
        sock.getpeername()
    except OSError:  # not connected: it could be
        return False
    finally:
        sock.close()
    return True
