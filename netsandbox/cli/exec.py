"""`netsandbox exec`: runs a second command in a running session, with the same confinement."""

from __future__ import annotations

import os

from netsandbox.backends.exec_failure import exec_failure
from netsandbox.cli.exec_denials import RecordedDenials
from netsandbox.cli.exec_relay import Relay, Standard, hold_signals
from netsandbox.cli.help import print_help
from netsandbox.cli.terminal import notice
from netsandbox.errors import HostError, UsageError
from netsandbox.runtime.inherited import hold_standard_descriptors
from netsandbox.runtime.option_parser import FLAG, SESSIONS, VALUE, Option, parse
from netsandbox.session.exec_client import SecondCommand, SessionEndedError
from netsandbox.session.exec_requests import ExecRequest
from netsandbox.session.session_status import Status
from netsandbox.session.sessions_client import find, is_suspended, silent_sessions, survey
from netsandbox.system import IS_MACOS
from netsandbox.text import printable

ENDED = 137  # the kernel kills what runs in a session that ends
OPTIONS = (
    Option("cwd", VALUE, "", "DIR", "folder to run it in, as the session sees it (the folder of the session)"),
    Option("quiet", FLAG, "q", "", "print no denials at the end"),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = SESSIONS
USAGE = """\
usage: netsandbox exec [--cwd DIR] [-q] NAME [--] CMD [ARG…]

  netsandbox exec shop -- bash
  netsandbox exec shop -- psql < dump.sql

Run CMD in a running session, beside its command: with the same files, network, rules, limits and variables. NAME is a \
session's name, its id or the beginning of its id.
Exit status: that of CMD; 127 if it is not found, 126 if it cannot be executed, 137 if the session ends first."""


def main(arguments: list[str]) -> int:
    """Exit status as `subprocess` has it: negative for the signal that killed the command."""
    parsed = parse(arguments, OPTIONS, "netsandbox exec", starts=lambda word: True)
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    given = parsed.command or []
    names, words = (parsed.words, given) if "--" in arguments else (given[:1], given[1:])
    if len(names) != 1 or not words or not words[0]:
        raise UsageError("exec needs a NAME and a command; write `netsandbox exec NAME -- CMD`")
    if IS_MACOS:
        raise UsageError("exec works on Linux only; start the command in a second session, with `netsandbox run`")
    hold_standard_descriptors()
    status = _find(names[0])
    standard = Standard()
    variable = f"TERM={os.environ['TERM']}" if standard.terminal and os.environ.get("TERM") else ""
    request = ExecRequest(standard.terminal, parsed.values.get("cwd", ""), variable, words)
    hold_signals()
    recorded = RecordedDenials(status, words) if "quiet" not in parsed.flags else None
    try:
        command = SecondCommand(status["session"], request.packed(standard.size()), standard.passed, request.folder)
        failed, ended = Relay(command, standard).run()
    except SessionEndedError:
        _print_denials(recorded, ENDED, is_running=False)
        notice(f"session {printable(status['name'])} ended")
        return ENDED
    if failed:
        raise exec_failure(words[0], failed, os.environ.get("PATH", ""))
    returncode = os.waitstatus_to_exitcode(ended)
    _print_denials(recorded, returncode, is_running=True)
    return returncode


def _print_denials(recorded: RecordedDenials | None, returncode: int, *, is_running: bool) -> None:
    for line in recorded.lines(returncode, is_running=is_running) if recorded is not None else ():
        notice(line)


def _find(word: str) -> Status:
    sessions, silent = survey()
    status = find(word, [*sessions, *silent_sessions(silent)] if silent else sessions)  # it imports much
    if status["session"] in silent and is_suspended(status["session"]):
        raise HostError(f"session {printable(status['name'])} is suspended; continue it with `fg` where it was started")
    return status  # one that is only slow has more time for the command
