"""What this process inherits from its caller and shares with the command: standard descriptors, signals, a terminal.

A socket keeps the network namespace it was made in. An internet socket of the host's network on descriptor 0 (inetd,
socket activation) could be disconnected and connected anywhere, past every door, so only sockets that cannot be aimed
again are passed on: connected unix stream and seqpacket sockets, which is what runtimes use in place of pipes.

A file keeps the mount it was opened on, and through /proc/self/fd it can be opened anew, to be written too. So none of
them may be a file that no session may write or see (`protection`, INV-8): the log of any session, settings, our code.

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
from netsandbox.text import single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import NoReturn

PR_SET_DUMPABLE = 4  # prctl(2); a Mac has neither the call nor such programs
FORWARDED = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT, _signal.SIGUSR1, _signal.SIGUSR2)
HARMLESS = (_socket.SOCK_STREAM, _socket.SOCK_SEQPACKET)
_NONBLOCKING = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# TCGETS and TCSETS of ioctl_tty(2), TIOCGETA and TIOCSETA of a Mac; struct termios has 36 and 72 bytes
GET_FLAGS, SET_FLAGS = (0x5401, 0x5402) if system.IS_LINUX else (0x40487413, 0x80487414)
FLAG_BYTES = 72
NAMES = ("standard input", "standard output", "standard error")
MAX_ENTRIES = 200_000  # of our folders that are searched for another name of a file


def hold_standard_descriptors() -> None:
    """The next file that we open would get the number of a closed 0, 1 or 2, so open /dev/null there."""
    while True:
        fd = os.open("/dev/null", os.O_RDWR)
        if fd > 2:
            os.close(fd)
            return
        os.set_inheritable(fd, True)  # noqa: FBT003 (the standard library's own signature)


def check_stdio(descriptors: tuple[int, int, int], kept: Iterable[str | None] = ()) -> None:
    """Refuse to start with a descriptor that leads out (attack 132), or to a file of ours or one of *kept*."""
    for name, descriptor in zip(NAMES, descriptors, strict=True):
        try:
            state = os.fstat(descriptor)
        except OSError as error:
            raise HostError(f"{name} is not open: {error.strerror}; redirect it, for instance to /dev/null") from None
        mode = state.st_mode
        if stat.S_ISREG(mode) and (path := _protecting(descriptor, state, kept)) is not None:
            raise HostError(f"{name} is {path}, which the command could write through it; put a pipe between")
        if stat.S_ISDIR(mode):
            raise HostError(f"{name} is a directory, through which the command could see past its view; use a file")
        if stat.S_ISSOCK(mode) and not _is_harmless(descriptor):
            raise HostError(
                f"{name} is a socket of the host's network, which the command could use to leave the sandbox; "
                "put a pipe between, such as `… | cat`"
            )


def _protecting(descriptor: int, state: os.stat_result, kept: Iterable[str | None]) -> str | None:
    """What the file of *descriptor* is, or lies in, that no session may write; None if it is nobody's.

    Device and inode decide, of the file and of the folders above it. A file with a second name, or one whose path is
    not reachable from here, is looked for in our folders by its inode."""
    from netsandbox.runtime.protection import own_paths

    own = own_paths(*kept)
    ours = {_identity(path): path for path in (*own.hidden, *own.read_only)}
    wanted = state.st_dev, state.st_ino
    if wanted in ours:
        return ascii(ours[wanted])
    path = _path(descriptor)
    if state.st_nlink == 0 and _identity(path) != wanted:
        return None  # it has no name: a pipe of a shell that is a file, memfd
    if state.st_nlink == 1 and _identity(path) == wanted:
        above = path
        while (above := os.path.dirname(above)) != "/":
            if _identity(above) in ours:
                return ascii(path)
        return None
    folders = [folder for identity, folder in ours.items() if identity is not None and identity[0] == wanted[0]]
    return ascii(path) if _is_below(folders, wanted[1]) else None


def _path(descriptor: int) -> str:
    """Where the file of *descriptor* lies, as far as that is known."""
    if system.IS_LINUX:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    import fcntl

    return os.fsdecode(fcntl.fcntl(descriptor, 50, bytes(1024)).rstrip(b"\0"))  # F_GETPATH


def _identity(path: str) -> tuple[int, int] | None:
    try:
        state = os.stat(path)
    except OSError:  # it is made later, or cannot be protected, which is reported elsewhere
        return None
    return state.st_dev, state.st_ino


def _is_below(folders: list[str], inode: int) -> bool:
    """Whether one of *folders* holds a file of this number; also if they are too large to know."""
    count = 0
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    count += 1
                    if entry.inode() == inode or count > MAX_ENTRIES:
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except NotADirectoryError:  # a single file, which is known already
            pass
        except (FileNotFoundError, PermissionError):  # gone meanwhile; closed to the command too
            pass
    return False


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
    """Write *text* as one line, which must be shorter than a pipe's smallest free room (4096 bytes); whether it was
    written. What is not printable is escaped: the command may have chosen a name in it.

    Standard error is the command's, and its reader may be slow or gone: a line that would have to wait is left out,
    since every door of the session would wait with it."""
    line = f"netsandbox: {single_line(text)}\n".encode()
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
        _leave_no_core()
        try:
            _signal.signal(-status, _signal.SIG_DFL)
        except (OSError, ValueError):  # SIGKILL and SIGSTOP cannot be set, and kill anyway
            pass
        os.kill(os.getpid(), -status)
        status = 128 - status
    os._exit(status)


def _leave_no_core() -> None:
    """The command's core was its own; ours would be a second one, with the variables that were withheld from it. A
    limit of 1 also holds for a program that gets cores on its standard input, which a limit of 0 does not (core(5))."""
    import resource

    try:
        resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
    except (OSError, ValueError):  # 0 already, and only root may raise it; then we must not be dumpable
        import ctypes

        if hide := getattr(ctypes.CDLL(None), "prctl", None):
            hide(PR_SET_DUMPABLE, 0, 0, 0, 0)


def terminal_of(stdio: tuple[int, int, int]) -> str | None:
    """The terminal of the command, which the session sees besides those that it makes."""
    for descriptor in stdio:
        try:
            return os.ttyname(descriptor)
        except OSError:
            continue
    return None
