"""Starts the command by the system's sandbox-exec, where netsandbox-apply cannot be started.

The same profile, the same self-test and the same words (`stage`), and a watcher of its own (`watcher`); both are run by
our own interpreter. The preload library stays out: what keeps the helper from running, a missing build, another
processor or a signature, most likely concerns the library too, and one that is not trusted ends every program it is in.
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
ALONE = ("-I", "-S", "-E", "-B")  # no site, no variables, no bytecode: the interpreter and its own library


def interpreter() -> str:
    """Ours, with every link followed: so Seatbelt sees it, and a virtual environment has no part in it."""
    if not sys.executable:
        raise HostError("this Python does not say where it is, so nothing can be started by it; use another Python")
    return os.path.realpath(sys.executable)


def interpreter_places() -> tuple[str, ...]:
    """What the profile must let run and be read, since the stage is inside of it."""
    return (interpreter(), os.path.realpath(sys.base_prefix))


class SandboxExec(HelperProcess):
    """The first argument is the path of sandbox-exec. Nothing has run when the constructor raises."""

    _words = -1  # where sandbox-exec and the interpreter say what they do not like

    def _start(
        self, helper: str, words: list[str], profile: str, stdio: tuple[int, int, int], ours: tuple[int, int, int]
    ) -> int:
        plan, report, life = ours
        self._words, words_in = os.pipe()
        for end in (self._words, words_in):  # nobody waits for words: what does not fit is lost
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

    def _last_words(self) -> str:
        try:
            return os.read(self._words, MAX_REPORT).decode("utf-8", "replace").strip()
        except BlockingIOError:
            return ""
        finally:
            os.close(self._words)


def _watch_over(command: int, python: str, life: int) -> None:
    """Returns when the watcher stands: the process that we start leaves it behind."""
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
