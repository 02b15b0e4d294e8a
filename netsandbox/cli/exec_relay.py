"""Between the user's terminal and a command of `netsandbox exec`, until it ends.

| standard input and output | what the command gets |
|---|---|
| both are terminals | a new terminal of the session; its master is here, and the user's terminal is raw |
| not terminals | the same files or pipes |
| one of them is a terminal | an empty input, or a pipe whose bytes are written to the terminal here |

The user's own terminal never enters the session (`session.exec_requests`). On the new one Ctrl-C, Ctrl-Z and the size
reach the command as on any terminal. Otherwise signals are passed on, and with Ctrl-Z both stop.
"""

from __future__ import annotations

import _signal
import fcntl
import os
import select
import termios

from netsandbox.runtime.inherited import FORWARDED
from netsandbox.session.exec_client import SecondCommand, SessionEndedError

CHUNK = 1 << 16
SIGNALS = (*FORWARDED, _signal.SIGTSTP, _signal.SIGWINCH)
MAX_LAST = 1 << 24  # bytes that are read after the end, of a process that stays and writes on


def hold_signals() -> None:
    """Until the relay can pass them on: the command may be ready before us."""
    _signal.pthread_sigmask(_signal.SIG_BLOCK, SIGNALS)


class Standard:
    """The descriptors for the command. `terminal` has a bit for each that is a new terminal; `sources` has for each
    pipe of ours where its bytes go."""

    def __init__(self) -> None:
        terminals = [os.isatty(number) for number in range(3)]
        interactive = terminals[0] and terminals[1]
        self.terminal = (0b111 if terminals[2] else 0b011) if interactive else 0
        self.sources: dict[int, int] = {}
        self._ours = [os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)]
        self.passed = [self._for(number) if terminals[number] else number for number in range(3)]

    def _for(self, number: int) -> int:
        if self.terminal or number == 0:
            return self._ours[0]
        source, end = os.pipe()
        self.sources[source] = number
        self._ours.append(end)
        return end

    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        if not self.terminal:
            return 0, 0
        size = os.get_terminal_size(0)
        return size.lines, size.columns

    def close(self) -> None:
        """Once the command has them."""
        while self._ours:
            os.close(self._ours.pop())


class Relay:
    """Runs once."""

    def __init__(self, command: SecondCommand, standard: Standard) -> None:
        self._command = command
        self._standard = standard
        self._sources = dict(standard.sources)  # where bytes come from, and where they go
        self._master: int | None = None
        self._typed = b""  # not yet taken by the command's terminal
        self._flags: list[int | list[bytes | int]] = []
        self._failed = 0

    def run(self) -> tuple[int, int]:
        """The errno of a command that could not be executed, or 0, and its wait status."""
        self._master = self._command.wait_started()
        self._standard.close()
        if self._master is not None:
            os.set_blocking(self._master, False)
            self._sources[self._master] = 1
            self._flags = termios.tcgetattr(0)
        self._catch_signals()
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, SIGNALS)
        try:
            self._make_raw()
            status = self._serve()
        finally:
            self._restore()
        return self._failed, status

    # Bytes

    def _serve(self) -> int:
        while True:
            for fd, events in self._wait():
                if fd == self._command.socket.fileno():
                    status = self._take_message()
                    if status is not None:
                        self._read_rest()
                        return status
                elif fd == 0:
                    self._take_typed()
                elif events & select.POLLOUT:
                    self._give_typed()
                elif not self._pass(fd):
                    del self._sources[fd]

    def _wait(self) -> list[tuple[int, int]]:
        poll = select.poll()
        poll.register(self._command.socket.fileno(), select.POLLIN)
        for fd in self._sources:
            poll.register(fd, select.POLLIN | (select.POLLOUT if fd == self._master and self._typed else 0))
        if self._master in self._sources and not self._typed:
            poll.register(0, select.POLLIN)
        return poll.poll()

    def _take_message(self) -> int | None:
        """The wait status, with the last message."""
        message = self._command.receive()
        if message.kind == "S":
            return message.number
        if message.kind == "":
            raise SessionEndedError
        self._command.raise_failure(message)
        if message.kind == "X":
            self._failed = message.number
        return None

    def _take_typed(self) -> None:
        self._typed = os.read(0, CHUNK)
        if self._typed:
            self._give_typed()
        else:  # the user's terminal is gone
            self._command.signal(_signal.SIGHUP)
            raise SystemExit(128 + _signal.SIGHUP)

    def _give_typed(self) -> None:
        assert self._master is not None
        try:
            self._typed = self._typed[os.write(self._master, self._typed) :]
        except BlockingIOError:
            pass
        except OSError:  # nobody has that terminal any more
            self._typed = b""

    def _pass(self, source: int) -> int:
        """How many bytes went on; 0 at the end."""
        try:
            data = os.read(source, CHUNK)
        except BlockingIOError:
            return 1
        except OSError:  # the last process that had the terminal has closed it
            return 0
        left = data
        while left:
            left = left[os.write(self._sources[source], left) :]
        return len(data)

    def _read_rest(self) -> None:
        """What the command wrote before its end. Others may keep the other end open, so nobody waits for them."""
        for source in self._sources:
            os.set_blocking(source, False)
            passed = 0
            while passed < MAX_LAST and select.select([source], [], [], 0)[0] and (more := self._pass(source)):
                passed += more

    # The user's terminal, and signals

    def _make_raw(self) -> None:
        if self._master is None:
            return
        raw = termios.tcgetattr(0)
        raw[0] &= ~(  # as cfmakeraw(3) does
            termios.IGNBRK
            | termios.BRKINT
            | termios.PARMRK
            | termios.ISTRIP
            | termios.INLCR
            | termios.IGNCR
            | termios.ICRNL
            | termios.IXON
        )
        raw[1] &= ~termios.OPOST
        raw[2] = raw[2] & ~(termios.CSIZE | termios.PARENB) | termios.CS8
        raw[3] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN)
        raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
        termios.tcsetattr(0, termios.TCSADRAIN, raw)

    def _restore(self) -> None:
        if self._flags:
            termios.tcsetattr(0, termios.TCSADRAIN, self._flags)

    def _catch_signals(self) -> None:
        for number in FORWARDED:
            if _signal.getsignal(number) != _signal.SIG_IGN:
                _signal.signal(number, lambda received, frame: self._command.signal(received))
        if _signal.getsignal(_signal.SIGTSTP) != _signal.SIG_IGN:
            _signal.signal(_signal.SIGTSTP, self._suspend)
        if self._master is not None:
            _signal.signal(_signal.SIGWINCH, self._resize)

    def _resize(self, number: int, frame: object) -> None:
        assert self._master is not None
        try:
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)))
        except OSError:  # one of the terminals is gone
            pass

    def _suspend(self, number: int, frame: object) -> None:
        """Stop with the command, and go on with it. A command on a terminal goes on: its own Ctrl-Z is typed there."""
        if self._master is None:
            self._command.signal(_signal.SIGSTOP)
        self._restore()
        _signal.signal(number, _signal.SIG_DFL)
        os.kill(os.getpid(), number)
        _signal.signal(number, self._suspend)
        if self._master is None:
            self._command.signal(_signal.SIGCONT)
        else:
            self._make_raw()
            self._resize(number, frame)
