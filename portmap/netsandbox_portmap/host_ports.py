"""Checks whether a port of the host is free, for windows and for the ports that are given out from them.

A window is free if TCP can bind all of it, since only TCP is published. A port for a program must be free for UDP too,
which the program may use. A check holds nothing, so its result is only valid for a moment.
"""

from __future__ import annotations

import _socket
from errno import EACCES, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT

from netsandbox_portmap.publish_addresses import LOCALHOST

TAKEN = (EADDRINUSE, EACCES)
NO_SUCH_ADDRESS = (EADDRNOTAVAIL, EAFNOSUPPORT)  # a host without IPv6: no program can hold a port there


def is_free(port: int, device: str | None = None, *, lingering: bool) -> bool:
    """Whether TCP can bind *port* on *device*, or else on both addresses of localhost. `OSError` if that is unknown.

    With *lingering*, a port that only closed connections hold, for a minute (TIME_WAIT), is free. The first try is
    without SO_REUSEADDR, which would also succeed beside a socket that is bound and does not listen yet.
    """
    tcp = _socket.SOCK_STREAM
    return all(
        _can_bind(tcp, address, port) or (lingering and _can_bind(tcp, address, port, reuse=True))
        for address in (LOCALHOST if device is None else (device,))
    )


def is_free_on_host(port: int) -> bool:
    """Whether a program can have *port*, TIME_WAIT ignored, since servers restart; unknown is not free (INV-1)."""
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
            sock.listen(0)  # fails beside another listener, and beside a socket bound without SO_REUSEADDR
    finally:
        sock.close()
