"""By which way the command is started on this Mac: our helper, or the system's sandbox-exec where that cannot run.

Asked before anything else is set up, since the second way comes without the preload library. Only a helper that does
not start at all is stood in for; a profile that is refused or does not hold ends the run, whichever way it came.
"""

from __future__ import annotations

import errno
import os

from netsandbox.backends.seatbelt.helper_process import HelperProcess
from netsandbox.backends.seatbelt.injected_environment import handed_on
from netsandbox.backends.seatbelt.spawn import spawn
from netsandbox.errors import HostError
from netsandbox.frozen import frozen
from netsandbox.policy.file_rules import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.backends.seatbelt.mac_system import MacSystem
    from netsandbox.settings import Command

BAD_ARCHITECTURE = 86  # EBADARCH of Darwin
ANSWERS = (125, 126)  # of netsandbox-apply to a call without arguments
NAME = "the helper netsandbox-apply"


@frozen
class LaunchMethod:
    """`trouble` says why it is not the helper's."""

    program: str
    applied: type[HelperProcess]
    runs: tuple[str, ...] = ()  # what the profile must let run besides the command
    trouble: str = ""

    @property
    def injects(self) -> bool:
        """Whether the preload library may come along."""
        return not self.trouble

    def start(self, command: Command, profile: str, *, closed_port: int) -> HelperProcess:
        words = handed_on(command.words, command.environment) if self.injects else command.words
        return self.applied(self.program, words, profile, command.environment, command.stdio, closed_port=closed_port)


def launch_method(system: MacSystem) -> LaunchMethod:
    """The helper's if it runs; else that of sandbox-exec, if there is one."""
    trouble = helper_trouble(system.helper)
    if not trouble:
        return LaunchMethod(system.helper, HelperProcess)
    if not os.access(system.sandbox_exec, os.X_OK):
        raise HostError(f"{trouble}, and there is no {system.sandbox_exec} in its place; reinstall netsandbox")
    from netsandbox.backends.seatbelt.sandbox_exec import SandboxExec, interpreter_places

    return LaunchMethod(system.sandbox_exec, SandboxExec, interpreter_places(), trouble)


def check_places(way: LaunchMethod, home: str) -> None:
    """What runs inside besides the command is opened to it, which must not be the whole home directory."""
    for place in way.runs:
        if is_within(os.path.realpath(home), place):
            raise HostError(
                f"{way.trouble}, and Python, which would stand in, is installed in {place!a} above your home directory;"
                " reinstall netsandbox"
            )


def library_trouble(system: MacSystem, way: LaunchMethod) -> str:
    """Why the session is without the preload library; empty if it has it."""
    if way.trouble or os.path.exists(system.library):
        return way.trouble
    return f"the preload library {system.library} is missing"


def helper_trouble(path: str) -> str:
    """Why the helper cannot be started, found by starting it with nothing to do; empty if it can."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        pid = spawn(path, (), (nothing, nothing, nothing))
    except OSError as error:
        return _not_started(error.errno or 0)
    finally:
        os.close(nothing)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status < 0:
        return f"{NAME} was killed by signal {-status}, as macOS does when it does not trust a signature"
    return "" if status in ANSWERS else f"{NAME} does not answer as ours does"


def _not_started(number: int) -> str:
    if number == errno.ENOENT:
        return f"{NAME} is missing"
    if number in (errno.ENOEXEC, BAD_ARCHITECTURE):
        return f"{NAME} is built for another processor"
    return f"{NAME} cannot be started ({os.strerror(number)})"
