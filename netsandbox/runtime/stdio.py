"""The standard descriptors: which of them the command may inherit, and notices for the user on standard error.

A socket keeps the network namespace it was made in. An internet socket of the host's network on descriptor 0 (inetd,
socket activation) could be disconnected and connected anywhere, past every door, so only sockets that cannot be aimed
again are passed on: connected unix stream and seqpacket sockets, which is what runtimes use in place of pipes.

A file keeps the mount it was opened on, and through /proc/self/fd it can be opened anew, to be written too. So none of
them may be a file that the session holds read-only (INV-8).
"""

from __future__ import annotations

import _socket
import os
import select
import stat

from netsandbox import system
from netsandbox.errors import HostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

HARMLESS = (_socket.SOCK_STREAM, _socket.SOCK_SEQPACKET)
_NONBLOCKING = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
NAMES = ("standard input", "standard output", "standard error")


def check_stdio(descriptors: tuple[int, int, int], kept: Iterable[str | None] = ()) -> None:
    """Refuse to start with a descriptor that leads out (attack 132), or to one of *kept*."""
    protected = {identity: path for path in kept if path is not None and (identity := _identity(path)) is not None}
    for name, descriptor in zip(NAMES, descriptors, strict=True):
        try:
            state = os.fstat(descriptor)
        except OSError as error:
            raise HostError(f"{name} is not open: {error.strerror}; redirect it, for instance to /dev/null") from None
        mode = state.st_mode
        if (state.st_dev, state.st_ino) in protected:
            path = protected[state.st_dev, state.st_ino]
            raise HostError(f"{name} is {path!a}, which the command could write through it; put a pipe between")
        if stat.S_ISDIR(mode):
            raise HostError(f"{name} is a directory, through which the command could see past its view; use a file")
        if stat.S_ISSOCK(mode) and not _is_harmless(descriptor):
            raise HostError(
                f"{name} is a socket of the host's network, which the command could use to leave the sandbox; "
                "put a pipe between, such as `… | cat`"
            )


def _identity(path: str) -> tuple[int, int] | None:
    try:
        state = os.stat(path)
    except OSError:  # it is made later, or cannot be protected, which is reported elsewhere
        return None
    return (state.st_dev, state.st_ino) if stat.S_ISREG(state.st_mode) else None


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


def write_notice(stderr: int, text: str) -> bool:
    """Write *text*, which must be shorter than a pipe's smallest free room (4096 bytes); whether it was written.

    Standard error is the command's, and its reader may be slow or gone: a line that would have to wait is left out,
    since every door of the session would wait with it."""
    line = f"netsandbox: {text}\n".encode()
    try:
        terminal = _reopened(stderr) if os.isatty(stderr) else None
        if terminal is not None:
            try:
                return os.write(terminal, line) == len(line)
            finally:
                os.close(terminal)
        watch = select.poll()
        watch.register(stderr, select.POLLOUT)
        if not watch.poll(0):
            return False
        os.write(stderr, line)
    except (OSError, ValueError):  # nobody reads it
        return False
    return True


def _reopened(stderr: int) -> int | None:
    """A second, non-blocking descriptor of a terminal: a terminal that is ready for a byte may not be ready for a line,
    and its mode is shared with the command. None where it cannot be opened, as after su."""
    try:
        return os.open(f"/proc/self/fd/{stderr}" if system.IS_LINUX else os.ttyname(stderr), _NONBLOCKING)
    except OSError:
        return None
