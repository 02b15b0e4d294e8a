"""Signals that are sent to us but meant for the command.

From `hold` until `release` they wait in the kernel: the command already runs while the supervisor still loads, and a
SIGTERM in between must neither kill us nor be lost. What was ignored when we were started stays ignored (nohup).
"""

from __future__ import annotations

import _signal
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

FORWARDED = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT, _signal.SIGUSR1, _signal.SIGUSR2)


class Forwarder:
    """Passes signals on by *send*, to PID 1 of the session, which knows whether the command has them already."""

    def __init__(self, send: Callable[[int], None]) -> None:
        self._send = send
        self._mask: set[int] | None = None
        self._previous: dict[int, object] = {}
        self._had_foreground = False

    def hold(self) -> None:
        self._had_foreground = _in_foreground()
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
        if self._had_foreground and not _in_foreground():
            _take_foreground()
        for number, handler in self._previous.items():
            _signal.signal(number, handler)
        self._previous.clear()
        self._unblock()

    def _unblock(self) -> None:
        if self._mask is not None:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, self._mask)
            self._mask = None

    def _forward(self, number: int, frame: object) -> None:
        self._send(number)


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
