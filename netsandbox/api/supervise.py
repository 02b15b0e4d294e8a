"""The supervisor of one session that the Python API starts: outside of the sandbox, and in a separate process.

    python -I -S netsandbox/__main__.py --supervise FILE LIFELINE

FILE is the descriptor of a file in memory with the request. At the end the report stands in its place, so neither side
ever waits for the other. The caller kills the session by a byte in the pipe LIFELINE, and by its own end.
"""

from __future__ import annotations

import _pickle
import _signal
import marshal
import os

from netsandbox.errors import NetsandboxError, UsageError
from netsandbox.frozen import copy_with
from netsandbox.session.launch import inherited, run_session, sweep_logs
from netsandbox.settings import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from netsandbox.session.launch import Outcome
    from netsandbox.settings import RunSettings


def main(arguments: list[str]) -> int:
    """The command's status, negative for a signal; that of the error if there was no session or no command."""
    file, lifeline = map(int, arguments)
    for descriptor in (file, lifeline):
        os.set_inheritable(descriptor, False)  # noqa: FBT003 (the standard library's own signature)
    _reset_signals()
    try:
        request = _pickle.loads(_content(file))  # our caller's, and in no other reach
    except Exception as error:  # a class of the caller's own
        _write(file, ("UsageError", f"policy and settings cannot be passed on ({error}); use those of netsandbox", 2))
        return 2
    session, policy, settings, words, environment = request
    try:
        if settings.secret_rules:
            settings, words = _with_secrets(settings, words)
        command = Command(words, inherited(settings) if environment is None else environment, lifeline=lifeline)
        outcome = run_session(lambda: policy, settings, command, id=session)
    except NetsandboxError as error:
        _write(file, (type(error).__name__, str(error), error.status))
        return error.status
    _write(file, _plain(outcome))
    sweep_logs(session)
    return outcome.returncode


def _with_secrets(settings: RunSettings, words: list[str]) -> tuple[RunSettings, list[str]]:
    """The settings with the secrets' values, and the command's words without them."""
    from netsandbox.policy.secret_rules import parse_secret
    from netsandbox.session.inspection import import_folders
    from netsandbox.session.secret_values import read_secrets

    import_folders()  # where inspection does not work, no value is read
    secrets = read_secrets([parse_secret(text, origin) for text, origin in settings.secret_rules], _no_program)
    if secrets is None:  # all are optional, and none has a value
        return settings, words
    return copy_with(settings, secrets=secrets), secrets.masked_words(words)


def _no_program(name: str) -> tuple[str, dict[str, str]]:
    raise UsageError("command= does not work from Python; run the command yourself, and set a variable")


def _reset_signals() -> None:
    """The program that started us may ignore its children's ends, or block signals in the thread that did."""
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def _content(file: int) -> bytes:
    return os.pread(file, os.fstat(file).st_size, 0)


def _plain(outcome: Outcome) -> tuple[Any, ...]:
    denied, files = ([tuple(vars(each).values()) for each in some] for some in (outcome.denied, outcome.denied_files))
    return outcome.returncode, denied, files, outcome.kept


def _write(file: int, report: tuple[Any, ...]) -> None:
    """In place of the request. A report that is cut short counts as none."""
    os.ftruncate(file, 0)
    os.pwrite(file, marshal.dumps(report), 0)
