"""A command in a session, as `subprocess.Popen` has it, and its result, as `subprocess.CompletedProcess`.

The process that the standard library starts is the supervisor. Its standard streams are the command's, its status is
the command's, signals that it gets are passed on, and its end is the end of the session. So waiting, pipes, text and
timeouts are those of `subprocess`.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Sequence
from typing import Any, AnyStr, TypeVar

from netsandbox.api.channel import Channel
from netsandbox.errors import NetsandboxError
from netsandbox.runtime.inherited import FORWARDED
from netsandbox.session.launch import Denial, Outcome
from netsandbox.text import denial_text, printable_place

T = TypeVar("T")
GRACE = 10.0  # seconds for a killed session to seal its log
MAX_TOLD = 3  # denials in the text of an error


class CalledProcessError(subprocess.CalledProcessError):
    """A command that failed although `check` was set. Its text names what was refused; `result` has everything."""

    def __init__(self, result: Result[Any]) -> None:
        super().__init__(result.returncode, result.args, result.stdout, result.stderr)
        self.result = result

    def __str__(self) -> str:
        return f"{super().__str__()}{_told(self.result.denied)}"


class TimeoutExpired(subprocess.TimeoutExpired):
    """A command that took too long: its session was killed. `outcome` has the session, its log and what was refused."""

    outcome: Outcome | None = None

    def __str__(self) -> str:
        return f"{super().__str__()}{_told(self.outcome.denied if self.outcome else ())}"


class Result(subprocess.CompletedProcess[T]):
    """A finished command: a `subprocess.CompletedProcess` that also has the session, its log and what was refused."""

    def __init__(self, args: Sequence[str], outcome: Outcome, stdout: T | None, stderr: T | None) -> None:
        super().__init__(args, outcome.returncode, stdout, stderr)
        self.session = outcome.session
        self.audit_log = outcome.audit_log
        self.denied = outcome.denied
        self.denied_files = outcome.denied_files
        self.kept = outcome.kept

    def check_returncode(self) -> None:
        if self.returncode:
            raise CalledProcessError(self)


class Popen(subprocess.Popen[AnyStr]):
    """A running command. Made by `Sandbox.popen`.

    `pid` is the supervisor's. `kill` ends the whole session, and so does the end of this program. The signals INT,
    TERM, HUP, QUIT, USR1 and USR2 reach the command. `wait` and `communicate` raise the error if the session or
    the command could not be started.
    """

    def __init__(self, channel: Channel, args: Sequence[str], **options: Any) -> None:
        self._channel = channel
        self._outcome: Outcome | None = None
        self._error: NetsandboxError | None = None
        self._is_cut = False
        self._settling = threading.Lock()
        self.session = channel.session
        self.audit_log = channel.audit_log
        try:
            super().__init__(channel.words, pass_fds=channel.descriptors, **options)
        except BaseException:
            channel.close()
            raise
        self.args = args
        channel.started()

    @property
    def outcome(self) -> Outcome | None:
        """What was refused, and more; None while the command runs."""
        return self._outcome if self.poll() is not None else None

    def poll(self) -> int | None:
        return None if super().poll() is None else self._settled()

    def wait(self, timeout: float | None = None) -> int:
        super().wait(timeout)
        status = self._settled()
        if self._error is not None:
            raise self._error
        return status

    def send_signal(self, sig: int) -> None:
        if sig == signal.SIGKILL:
            self.kill()
        elif sig in FORWARDED:
            super().send_signal(sig)
        else:
            raise ValueError(f"signal {sig} is not passed on to the command; use INT, TERM, HUP, QUIT, USR1 or USR2")

    def kill(self) -> None:
        """Kill the session, whose supervisor then seals the log. A second call kills the supervisor too."""
        if self._is_cut:
            super().send_signal(signal.SIGKILL)
        else:
            self._is_cut = True
            self._channel.cut()

    def end(self) -> None:
        """Kill the session and wait for its end."""
        self.kill()
        try:
            super().wait(GRACE)
        except subprocess.TimeoutExpired:
            self.kill()
            super().wait()
        self._settled()

    def _settled(self) -> int:
        """The status that the supervisor reported: it is right even where this program ignores its children's ends."""
        with self._settling:
            if self._outcome is None and self._error is None:
                try:
                    self._outcome = self._channel.outcome(self.returncode)
                    self.returncode = self._outcome.returncode
                except NetsandboxError as error:
                    self._error = error
                    self.returncode = error.status
                self._channel.close()
        status: int = self.returncode
        return status


def _told(denied: Sequence[Denial]) -> str:
    """The first few denials, each with the option that allows it."""
    told = [denial_text(printable_place(each.host, each.port), each.reason, each.flag) for each in denied[:MAX_TOLD]]
    return "".join(f"\nnetsandbox: {line}" for line in told)
