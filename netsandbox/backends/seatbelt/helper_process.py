"""Starts netsandbox-apply (netsandbox/backends/seatbelt/native), which confines itself and becomes the command.

It gets a plan, reports what happened in one step, and is the command from then on: our child.
"""

from __future__ import annotations

import _signal
import errno
import os
import time

from netsandbox.backends.exec_failure import exec_failure
from netsandbox.backends.seatbelt.spawn import spawn
from netsandbox.errors import HostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from netsandbox.errors import NetsandboxError

MAX_REPORT = 4096
CONFINED = b"+"  # the whole report: the helper has become the command
PATIENCE, PAUSE = 1.0, 0.005  # seconds for the watcher to act, and between two checks
TYPED = (_signal.SIGINT, _signal.SIGQUIT)


class HelperProcess:
    """The command as our child. If the constructor raises, nothing of it has run."""

    def __init__(
        self,
        helper: str,
        command: Sequence[str],
        profile: str,
        environment: Mapping[bytes, bytes],
        stdio: tuple[int, int, int],
        *,
        closed_port: int,
        limits: Sequence[tuple[int, int]] = (),
    ) -> None:
        """*closed_port* of localhost is bound by us and does not listen: the profile must forbid it. *limits* are
        resources of setrlimit(2) with their values."""
        wanted = plan_bytes(profile, environment)
        first = ",".join((str(closed_port), *(f"{number}={value}" for number, value in limits)))
        plan, to_plan = os.pipe()
        from_report, report = os.pipe()
        life, self._life = os.pipe()
        self.pid = 0
        self._ended = False
        try:
            self.pid = spawn(helper, [first, *command], (*stdio, plan, report, life))
        except OSError as error:
            raise _cannot_start(error) from None
        finally:
            for fd in (plan, report, life):
                os.close(fd)
            if not self.pid:
                for fd in (to_plan, from_report, self._life):
                    os.close(fd)
        _write_all(to_plan, wanted)
        outcome = _read_all(from_report)
        if outcome != CONFINED:
            self.send(_signal.SIGKILL)  # it has exited, unless it is not our helper
            self._reap()
            path = os.fsdecode(environment.get(b"PATH", b""))
            raise failure(outcome.removeprefix(CONFINED), command[0], path)

    def signal(self, number: int) -> None:
        """Forward a signal, unless the terminal sent it to the command too: both are in one process group."""
        if not (number in TYPED and _in_foreground()):
            self.send(number)

    def send(self, number: int) -> None:
        if not self._ended:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass

    def wait(self) -> int:
        """The command's wait status; blocks until it has ended."""
        _, status = os.waitpid(self.pid, 0)
        self._dismiss()
        return status

    def status(self) -> int | None:
        """The command's wait status, or None while it runs."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        self._dismiss()
        return status

    def end(self) -> None:
        """End the command and its descendants. The watcher does this while their pids are still certain."""
        if self._life >= 0:
            os.close(self._life)
            self._life = -1

    def close(self) -> None:
        """End the command and wait for it."""
        if self._ended:
            return
        self.end()
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if self.status() is not None:
                return
            time.sleep(PAUSE)
        self.send(_signal.SIGKILL)
        self._reap()

    def _reap(self) -> None:
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass
        self._dismiss()

    def _dismiss(self) -> None:
        """Dismiss the watcher: from now on the pid may belong to another process."""
        self._ended = True
        if self._life >= 0:
            try:
                os.write(self._life, b".")
            except BrokenPipeError:  # the watcher never started
                pass
            os.close(self._life)
            self._life = -1


def plan_bytes(profile: str, environment: Mapping[bytes, bytes]) -> bytes:
    """The profile, then each variable, each with a terminating NUL."""
    strings = [profile.encode(), *(b"%s=%s" % pair for pair in environment.items())]
    if any(b"\0" in string for string in strings):
        raise HostError("a NUL byte in the profile or the environment; leave it out")
    return b"".join(string + b"\0" for string in strings)


def _cannot_start(error: OSError) -> NetsandboxError:
    if error.errno == errno.ENOENT:
        return HostError("the helper netsandbox-apply is missing, and nothing is run without it; reinstall netsandbox")
    if error.errno == errno.E2BIG:
        return HostError("the command's arguments are too long for this system; shorten them")
    return HostError(f"cannot start the helper netsandbox-apply: {error.strerror}; reinstall netsandbox")


def _write_all(fd: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(fd, data) :]
    except BrokenPipeError:  # the helper has exited; its report has the reason
        pass
    finally:
        os.close(fd)


def _read_all(fd: int) -> bytes:
    """Read until the helper has become the command, which closes its end, or has exited."""
    report = b""
    try:
        while len(report) < MAX_REPORT and (data := os.read(fd, MAX_REPORT)):
            report += data
    finally:
        os.close(fd)
    return report


def _in_foreground() -> bool:
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


MEANINGS = {
    "profile": "this macOS does not accept the Seatbelt profile",
    "self-test": "the Seatbelt profile was accepted and does not hold",
    "watch": "cannot watch over the command",
    "plan": "the helper did not get what it needs",
    "environment": "the helper did not get what it needs",
    "limits": "this Mac does not accept a limit",
}
ADVICE = "nothing was run; report it with the output of `sw_vers` and `netsandbox run --dry-run --backend seatbelt`"
LOST = "the helper ended without a report; nothing was run, see `netsandbox doctor`"


def read_report(data: bytes) -> tuple[str, int, str] | None:
    """Step, errno and detail; None if *data* is no report."""
    parts = data.split(b"\0", 2)
    if len(parts) != 3 or not parts[0] or not parts[1].isdigit():
        return None
    step, number, detail = parts
    return step.decode("ascii", "replace"), int(number), detail.decode("utf-8", "replace")


def failure(data: bytes, command: str, path: str) -> NetsandboxError:
    """The error for the helper's report before it exited."""
    report = read_report(data)
    if report is None:
        return HostError(LOST)
    step, number, detail = report
    if step == "exec":
        return exec_failure(command, number, path)
    why = os.strerror(number) if number else "no error"
    cause = _line(f"{why}: {detail}" if detail else why)
    return HostError(f"{MEANINGS.get(step, 'cannot set the session up')} ({step}: {cause}); {ADVICE}")


def _line(text: str) -> str:
    """The system's message on one line."""
    return ascii(text)[1:-1]
