"""`netsandbox stop`: ends running sessions and waits until they have ended."""

from __future__ import annotations

from netsandbox.cli.help import print_help
from netsandbox.cli.progress import progress
from netsandbox.cli.terminal import notice
from netsandbox.errors import UsageError
from netsandbox.runtime.option_parser import FLAG, SESSIONS, VALUE, Option, parse
from netsandbox.session.session_status import Status
from netsandbox.session.sessions_client import find, pid_of, resume, silent_sessions, stop_sessions, survey
from netsandbox.text import plural, printable

TIMEOUT = 10.0
MAX_TIMEOUT = 86400.0
OPTIONS = (
    Option("all", FLAG, "", "", "all your sessions"),
    Option("timeout", VALUE, "t", "SECONDS", "seconds to wait until they have ended (10)"),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = SESSIONS
USAGE = """\
usage: netsandbox stop NAME… [--timeout SECONDS]
       netsandbox stop --all [--timeout SECONDS]

End sessions and wait until they have ended. NAME is a session's name, its id or the beginning of its id.
Exit status: 0 when all have ended, 1 when one is still running."""


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox stop")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    words = [*parsed.words, *(parsed.command or ())]
    seconds = read_seconds(parsed.values.get("timeout"))
    everything = "all" in parsed.flags
    if everything and words:
        raise UsageError(f"--all stops every session, not only {words[0]!a}; leave one of them out")
    if not everything and not words:
        raise UsageError("stop needs a NAME or --all; `netsandbox ps` lists the sessions")
    found, silent = survey()
    sessions = [*found, *silent_sessions(silent)]
    # All names are resolved before the first session is ended.
    chosen = sessions if everything else [find(word, sessions) for word in words]
    known = {status["session"]: status for status in chosen}
    for session in known:
        if session in silent:
            resume(session)
    with progress(f"waiting until {plural(len(known), 'session')} ended"):
        left = stop_sessions(known, seconds)
    for session in left:
        notice(_still_there(known[session], seconds, answered=session not in silent))
    return 1 if left else 0


def _still_there(status: Status, seconds: float, *, answered: bool) -> str:
    pid = pid_of(status["session"])
    way = f"`kill -9 {pid}` ends it at once" if pid else "end its `netsandbox run` with kill -9"
    what = f"is still running after {seconds:g} s" if answered else "does not answer"
    return f"{printable(status['name'])} {what}; {way}"


def read_seconds(text: str | None) -> float:
    if text is None:
        return TIMEOUT
    whole, dot, part = text.partition(".")
    if text.isascii() and whole.isdigit() and (part.isdigit() or not dot) and float(text) <= MAX_TIMEOUT:
        return float(text)
    raise UsageError(f"--timeout {text[:80]!a} is not a number of seconds up to a day; write for instance --timeout 30")
