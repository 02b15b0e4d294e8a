"""The loopback device of strategy `rewire-device` (pure but for one trial bind).

A Mac answers on 127.0.0.1 alone until root gives `lo0` another address. That is the user's to do, once: we say how, and
never ask for a password.
"""

from __future__ import annotations

import _socket
import errno

from netsandbox.errors import HostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def alias_command(device: str) -> str:
    return f"sudo ifconfig lo0 alias {device}"


def removal_command(device: str) -> str:
    return f"sudo ifconfig lo0 -alias {device}"


def check_device(device: str, can_bind: Callable[[str], bool]) -> None:
    """An error that says what is missing, or nothing."""
    if not can_bind(device):
        raise HostError(
            f"this Mac has no loopback address {device}; run `{alias_command(device)}`, which lasts until the next"
            f" restart or `{removal_command(device)}`, and start the session with --listening-loopback {device}, or use"
            " --network-strategy rewire-port"
        )


def can_bind(device: str) -> bool:
    sock = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        sock.bind((device, 0))
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            return False
        raise HostError(f"cannot tell whether {device} is an address of this Mac: {error.strerror}") from None
    finally:
        sock.close()
    return True
