"""Streams the system's log: a program that prints it runs as our child.

Rules kept here:
1. It runs outside the profile, since it works only there, with an empty environment and three descriptors.
2. It ends with us, however we end: a shell holds it, and waits for the end of our pipe. The program itself would notice
   our death only at its next line, which may never come.
3. It has a separate process group, so that Ctrl-C reaches only the command, and one signal ends the whole group.
4. Every wait for it is bounded.
"""

from __future__ import annotations

import _signal
import os
import select

from netsandbox.backends.seatbelt.spawn import spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SHELL = "/bin/sh"
# The shell holds no end of the output, so our input ends when the program does. At last the shell ends the process
# group that it leads, whose number no other group can have.
HOLD = """\
exec 3>&1 >/dev/null
"$@" </dev/null >&3 3>&- &
exec 3>&-
read -r end
kill -9 -$$
"""
AT_ONCE = 16384  # bytes; the doors are served between two reads


class LogStream:
    """*words* are the program's path and arguments. OSError: it could not be started."""

    def __init__(self, words: Sequence[str]) -> None:
        self._output = self._life = -1
        held, self._life = os.pipe()
        self._output, output = os.pipe()
        try:
            os.set_blocking(self._output, False)
            self._pid = _hold(words, held, output)
        except BaseException:
            self._close_pipes()
            raise
        finally:
            os.close(held)
            os.close(output)

    def fileno(self) -> int:
        return self._output

    def wait(self, seconds: float) -> None:
        """Wait until it has printed something or has ended, at most *seconds*."""
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        poll.poll(seconds * 1000)

    def read(self) -> bytes | None:
        """Its output; None: nothing now; empty: it has ended."""
        try:
            return os.read(self._output, AT_ONCE)
        except BlockingIOError:
            return None

    def close(self) -> None:
        if self._output < 0:
            return
        try:
            os.killpg(self._pid, _signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # the whole group has ended
            pass
        self._close_pipes()
        try:
            os.waitpid(self._pid, 0)
        except ChildProcessError:  # SIGCHLD is ignored in this process, so the kernel reaped it
            pass

    def _close_pipes(self) -> None:
        for fd in (self._output, self._life):
            if fd >= 0:
                os.close(fd)
        self._output = self._life = -1


def _hold(words: Sequence[str], held: int, output: int) -> int:
    nothing = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        return spawn(SHELL, ("-c", HOLD, SHELL, *words), (held, output, nothing), leads_group=True)
    finally:
        os.close(nothing)
