"""What a program and the supervisor of its session share (see `supervise`): request, report and lifeline."""

from __future__ import annotations

import marshal
import os
import pickle
import sys
from collections.abc import Mapping, Sequence

from netsandbox import errors
from netsandbox.frozen import copy_with
from netsandbox.paths import PACKAGE, log_path, new_session_id
from netsandbox.policy.policy import Policy
from netsandbox.session.launch import Denial, FileDenial, Outcome, encoded
from netsandbox.settings import RunSettings

_MAIN = os.path.join(PACKAGE, "__main__.py")


class CommandNotFoundError(errors.CommandError, FileNotFoundError):
    """The command does not exist, or the session does not see it."""


class CommandNotExecutableError(errors.CommandError, PermissionError):
    """The command exists and cannot be executed."""


_COMMAND_ERRORS = {127: CommandNotFoundError, 126: CommandNotExecutableError}


class Channel:
    """The caller's side, for one session. `words` starts the supervisor, which must inherit `descriptors`."""

    def __init__(
        self, policy: Policy, settings: RunSettings, command: Sequence[str], env: Mapping[str, str] | None
    ) -> None:
        self._file = self._reader = self._writer = -1
        if not sys.executable:
            raise errors.HostError("sys.executable is empty, so no supervisor can be started; run a Python interpreter")
        self.session = new_session_id()
        self.audit_log = log_path(self.session, settings.audit_log)
        if settings.audit_log:  # a relative path is meant from here, not from the folder of the command
            settings = copy_with(settings, audit_log=self.audit_log)
        words = [os.fspath(word) for word in command]
        request = (self.session, policy, settings, words, None if env is None else encoded(env.items()))
        try:
            self._file = _file_of(pickle.dumps(request))
            self._reader, self._writer = os.pipe()
        except BaseException:
            self.close()
            raise
        self.descriptors = (self._file, self._reader)
        self.words = [sys.executable, "-I", "-S", _MAIN, "--supervise", *map(str, self.descriptors)]

    def started(self) -> None:
        """The supervisor has its copies."""
        self._reader = _closed(self._reader)

    def cut(self) -> None:
        """Kill the session: its supervisor kills the command, seals the log and reports."""
        try:
            if self._writer >= 0:
                os.write(self._writer, b"!")
        except BrokenPipeError:  # it has ended
            pass

    def outcome(self, returncode: int) -> Outcome:
        """The report once the supervisor has ended with *returncode*. Raises the error that it reported.

        Without a report a signal killed the supervisor, and with it the session.
        """
        report = self._report()
        match report:
            case (int(status), list(denied), list(files), tuple(kept)):
                some, others = (Denial(*each) for each in denied), (FileDenial(*each) for each in files)
                return Outcome(status, self.session, self.audit_log, tuple(some), tuple(others), kept)
            case (str(kind), str(text), int(status)):
                raise _error(kind, text, status)
        if returncode >= 0:
            text = f"the supervisor of the session ended with status {returncode} and without a report"
            raise errors.HostError(f"{text}; standard error has its message")
        return Outcome(returncode, self.session, self.audit_log)

    def _report(self) -> object:
        try:
            return marshal.loads(os.pread(self._file, os.fstat(self._file).st_size, 0))  # noqa: S302 (our own process)
        except (ValueError, EOFError, TypeError):  # the request is still there
            return None

    def close(self) -> None:
        """Without the lifeline a session that still runs is killed."""
        self._file, self._reader, self._writer = map(_closed, (self._file, self._reader, self._writer))

    def __del__(self) -> None:
        self.close()


def _error(kind: str, text: str, status: int) -> errors.NetsandboxError:
    if status in _COMMAND_ERRORS and kind == errors.CommandError.__name__:
        return _COMMAND_ERRORS[status](text, status)
    found = getattr(errors, kind, errors.HostError)
    return found(text, status) if found is errors.CommandError else found(text)


def _file_of(data: bytes) -> int:
    """A descriptor of a nameless file with *data*, in memory where the system can."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("netsandbox")
    else:
        import tempfile

        with tempfile.TemporaryFile() as made:
            file = os.dup(made.fileno())
    with open(os.dup(file), "wb") as stream:
        stream.write(data)
    return file


def _closed(descriptor: int) -> int:
    if descriptor >= 0:
        os.close(descriptor)
    return -1
