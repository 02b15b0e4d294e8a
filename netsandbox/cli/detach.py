"""`netsandbox run --detach`: a second process without a terminal has the session, and the first waits for its start."""

from __future__ import annotations

import _signal
import os

from netsandbox.frozen import copy_with
from netsandbox.runtime.detached import Detached
from netsandbox.runtime.inherited import exit_with
from netsandbox.settings import Command

MAX_REPLY = 256


def detached(command: Command) -> Command:
    """Returns in the process that becomes the supervisor; the other one ends here."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        os.setsid()  # no terminal's end is ours
        output = Detached(writing)
        return copy_with(command, stdio=output.stdio, detached=output)
    os.close(writing)
    try:
        reply = os.read(reading, MAX_REPLY).decode("ascii", "replace")
    except KeyboardInterrupt:
        os.kill(pid, _signal.SIGTERM)
        raise
    if not reply:  # the other one has said why
        exit_with(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    _introduce(reply.partition(" ")[2])
    os._exit(0)


def _introduce(name: str) -> None:
    """The name alone for a program; for a person what to do with it."""
    os.write(1, f"{name}\n".encode())
    if os.isatty(2):
        from netsandbox.cli.terminal import notice

        notice(f"in the background; `netsandbox logs {name}` prints its output, `netsandbox stop {name}` ends it")
