"""Whether a port of the host is free: one place to ask, for windows and for the ports that are given out of them.

A window is free when TCP can have all of it, since only TCP is published. A port that is given to a program must be
free by UDP too, which the program may want. Nothing is held by asking: the answer is good for a moment.
"""

from __future__ import annotations

import _socket
from errno import EACCES, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT

from netsandbox_portmap.publish_addresses import LOCALHOST

TAKEN = (EADDRINUSE, EACCES)
NO_SUCH_ADDRESS = (EADDRNOTAVAIL, EAFNOSUPPORT)  # a host without IPv6: nobody can hold a port there


def is_free(port: int, device: str | None = None, *, lingering: bool) -> bool:
    """By TCP, on *device* or without one on both addresses of localhost. `OSError` when that cannot be known.

    *lingering* counts as free what only ended connections hold, for a minute (TIME_WAIT). First without SO_REUSEADDR,
    which would also say yes beside a socket that is bound but does not listen yet.
    """
    tcp = _socket.SOCK_STREAM
    return all(
        _can_bind(tcp, address, port) or (lingering and _can_bind(tcp, address, port, reuse=True))
        for address in (LOCALHOST if device is None else (device,))
    )


def is_free_on_host(port: int) -> bool:
    """Can it be given to a program? One that is restarted keeps its URLs; what cannot be known is not free (INV-1)."""
    try:
        by_udp = all(_can_bind(_socket.SOCK_DGRAM, address, port) for address in LOCALHOST)
        return by_udp and is_free(port, lingering=True)
    except OSError:
        return False


def _can_bind(kind: int, address: str, port: int, *, reuse: bool = False) -> bool:
    try:
        _bind(kind, address, port, reuse=reuse)
    except OSError as error:
        if error.errno in TAKEN:
            return False
        if address == "::1" and error.errno in NO_SUCH_ADDRESS:
            return True
        raise
    return True


def _bind(kind: int, address: str, port: int, *, reuse: bool) -> None:
    sock = _socket.socket(_socket.AF_INET6 if ":" in address else _socket.AF_INET, kind)
    try:
        if reuse:
            sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        if reuse:
            sock.listen(0)  # refused beside another listener, and beside one that is bound without SO_REUSEADDR
    finally:
        sock.close()
