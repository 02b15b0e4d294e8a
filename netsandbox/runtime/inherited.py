"""What this process inherits from its caller and shares with the command: standard descriptors, signals, a terminal.

A socket keeps the network namespace it was made in. An internet socket of the host's network on descriptor 0 (inetd,
socket activation) could be disconnected and connected anywhere, past every door, so only sockets that cannot be aimed
again are passed on: connected unix stream and seqpacket sockets, which is what runtimes use in place of pipes.

A file keeps the mount it was opened on, and through /proc/self/fd it can be opened anew, to be written too. So none of
them may be a file that the session holds read-only (INV-8).

Signals that are sent to us are meant for the command. From `hold` until `release` they wait in the kernel: the command
already runs while the supervisor still loads, and a SIGTERM in between must neither kill us nor be lost. What was
ignored when we were started stays ignored (nohup).
"""

from __future__ import annotations

import _signal
import _socket
import os
import select
import stat

from netsandbox import system
from netsandbox.errors import HostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import NoReturn

FORWARDED = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT, _signal.SIGUSR1, _signal.SIGUSR2)
HARMLESS = (_socket.SOCK_STREAM, _socket.SOCK_SEQPACKET)
_NONBLOCKING = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# TCGETS and TCSETS of ioctl_tty(2), TIOCGETA and TIOCSETA of a Mac; struct termios has 36 and 72 bytes
GET_FLAGS, SET_FLAGS = (0x5401, 0x5402) if system.IS_LINUX else (0x40487413, 0x80487414)
FLAG_BYTES = 72
NAMES = ("standard input", "standard output", "standard error")


def hold_standard_descriptors() -> None:
    """The next file that we open would get the number of a closed 0, 1 or 2, so open /dev/null there."""
    while True:
        fd = os.open("/dev/null", os.O_RDWR)
        if fd > 2:
            os.close(fd)
            return
        os.set_inheritable(fd, True)  # noqa: FBT003 (the standard library's own signature)


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


class Forwarder:
    """Passes signals on by *send*, to PID 1 of the session, which knows whether the command has them already."""

    def __init__(self, send: Callable[[int], None]) -> None:
        self._send = send
        self._mask: set[int] | None = None
        self._previous: dict[int, object] = {}
        self._had_foreground = False
        self._flags = b""

    def hold(self) -> None:
        self._had_foreground = _with_terminal(self._keep_flags)
        self._mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, FORWARDED)

    def release(self) -> None:
        """From now on they are passed on, first those that waited. Only the main thread can have handlers."""
        for number in FORWARDED:
            if _signal.getsignal(number) != _signal.SIG_IGN:
                try:
                    self._previous[number] = _signal.signal(number, self._forward)
                except ValueError:
                    break
        self._unblock()

    def restore(self) -> None:
        """As it was before `hold`, the terminal too."""
        if self._had_foreground:
            if not _in_foreground():
                _take_foreground()
            _with_terminal(self._restore_flags)
        for number, handler in self._previous.items():
            _signal.signal(number, handler)
        self._previous.clear()
        self._unblock()

    def _keep_flags(self, terminal: int) -> bool:
        self._flags = _flags_of(terminal)
        return os.tcgetpgrp(terminal) == os.getpgrp()

    def _restore_flags(self, terminal: int) -> None:
        """A command that was killed left the terminal as its editor had it: without echo, without lines."""
        if self._flags and _flags_of(terminal) != self._flags:
            import fcntl

            fcntl.ioctl(terminal, SET_FLAGS, self._flags)

    def _unblock(self) -> None:
        if self._mask is not None:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, self._mask)
            self._mask = None

    def _forward(self, number: int, frame: object) -> None:
        self._send(number)


def _flags_of(terminal: int) -> bytes:
    import fcntl

    return fcntl.ioctl(terminal, GET_FLAGS, bytes(FLAG_BYTES))


def _in_foreground() -> bool:
    return _with_terminal(lambda terminal: os.tcgetpgrp(terminal) == os.getpgrp())


def _take_foreground() -> None:
    """A shell inside made its own group the foreground one and cannot name ours to give it back."""
    mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGTTOU,))  # a background process would be stopped
    _with_terminal(lambda terminal: os.tcsetpgrp(terminal, os.getpgrp()))
    _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)


def _with_terminal(act: Callable[[int], object]) -> bool:
    """The result of *act* on the controlling terminal; False without a terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return bool(act(terminal))
    except OSError:
        return False
    finally:
        os.close(terminal)


def exit_with(status: int) -> NoReturn:
    """Exit with *status*; a negative one means dying of that signal ourselves, so that our caller sees it (INV-9)."""
    if status < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command's core was its own; ours would be a second one
        try:
            _signal.signal(-status, _signal.SIG_DFL)
        except (OSError, ValueError):  # SIGKILL and SIGSTOP cannot be set, and kill anyway
            pass
        os.kill(os.getpid(), -status)
        status = 128 - status
    os._exit(status)


def terminal_of(stdio: tuple[int, int, int]) -> str | None:
    """The terminal of the command, which the session sees besides those that it makes."""
    for descriptor in stdio:
        try:
            return os.ttyname(descriptor)
        except OSError:
            continue
    return None
