"""Starts the command with the system's sandbox-exec, if netsandbox-apply cannot be started.

The profile, the self-test and the report are the same (`helper_stage`); the watcher is a separate one (`watcher`). Our
own interpreter runs both. The preload library is left out: the cause that stops the helper (a missing build, another
processor, a signature) most likely affects the library too, and an untrusted library ends every program that loads it.
"""

from __future__ import annotations

import _signal
import errno
import os
import sys

from netsandbox.backends.seatbelt.helper_process import MAX_REPORT, HelperProcess
from netsandbox.backends.seatbelt.spawn import spawn
from netsandbox.errors import HostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.errors import NetsandboxError

SANDBOX_EXEC = "/usr/bin/sandbox-exec"
_FOLDER = os.path.dirname(os.path.abspath(__file__))
STAGE, WATCHER = os.path.join(_FOLDER, "helper_stage.py"), os.path.join(_FOLDER, "watcher.py")
ALONE = ("-I", "-S", "-E", "-B")  # no site, no variables, no bytecode: only the interpreter and its library


def interpreter() -> str:
    """Our interpreter with every link followed, as Seatbelt sees it and without a virtual environment."""
    if not sys.executable:
        raise HostError("this Python does not say where it is, so nothing can be started by it; use another Python")
    return os.path.realpath(sys.executable)


def interpreter_paths() -> tuple[str, ...]:
    """The paths that the profile must allow to run and to be read, since the stage runs inside it."""
    return (interpreter(), os.path.realpath(sys.base_prefix))


class SandboxExec(HelperProcess):
    """The first argument is the path of sandbox-exec. If the constructor raises, nothing has run."""

    _words = -1  # receives the messages of sandbox-exec and the interpreter

    def _start(
        self, helper: str, words: list[str], profile: str, stdio: tuple[int, int, int], ours: tuple[int, int, int]
    ) -> int:
        plan, report, life = ours
        self._words, words_in = os.pipe()
        for end in (self._words, words_in):  # never blocks: messages that do not fit are lost
            os.set_blocking(end, False)
        python = interpreter()
        line = ["-p", profile, python, *ALONE, STAGE, *words]
        try:
            pid = spawn(helper, line, (stdio[0], stdio[1], words_in, plan, report, stdio[2]))
        except OSError as error:
            os.close(self._words)
            raise _cannot_start(helper, error) from None
        finally:
            os.close(words_in)
        try:
            _watch_over(pid, python, life)
        except BaseException:
            os.close(self._words)
            os.kill(pid, _signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        return pid

    def _last_output(self) -> str:
        try:
            return os.read(self._words, MAX_REPORT).decode("utf-8", "replace").strip()
        except BlockingIOError:
            return ""
        finally:
            os.close(self._words)


def _watch_over(command: int, python: str, life: int) -> None:
    """Start the watcher and return once it runs: the process that we start forks it and exits."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        pid = spawn(python, [*ALONE, WATCHER, str(command)], (nothing, nothing, nothing, life))
    except OSError as error:
        raise HostError(f"cannot watch over the command: {error.strerror}; nothing was run") from None
    finally:
        os.close(nothing)
    if os.waitpid(pid, 0)[1] != 0:
        raise HostError("cannot watch over the command: its watcher did not start; nothing was run, reinstall Python")


def _cannot_start(program: str, error: OSError) -> NetsandboxError:
    if error.errno == errno.ENOENT:
        return HostError(f"there is no {program}, and nothing is run without it; reinstall netsandbox")
    if error.errno == errno.E2BIG:
        return HostError(
            "the profile and the command's arguments are too long for sandbox-exec; reinstall netsandbox, whose helper"
            " has no such limit, or shorten them"
        )
    return HostError(f"cannot start {program}: {error.strerror}; nothing was run, reinstall netsandbox")
