"""`netsandbox ports`: lists the published ports of running sessions."""

from __future__ import annotations

from netsandbox.cli.help import print_help
from netsandbox.cli.session_table import PORTS_TITLES, PORTS_YIELDING, port_entries, port_rows, unpublished
from netsandbox.cli.terminal import notice, print_text, terminal_width
from netsandbox.errors import UsageError
from netsandbox.runtime.option_parser import FLAG, SESSIONS, Option, parse
from netsandbox.session.session_status import Status
from netsandbox.session.sessions_client import find, live_sessions, nothing_runs
from netsandbox.text import columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OPTIONS = (
    Option("json", FLAG, "", "", "for programs"),
    Option("watch", FLAG, "w", "", "update the list until Ctrl-C"),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = SESSIONS
USAGE = """\
usage: netsandbox ports [NAME] [--json] [--watch]

List the published ports of your running sessions, or of one of them, and the URL of each. NAME is a session's name, \
its id or the beginning of its id."""


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox ports")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    words = [*parsed.words, *(parsed.command or ())]
    if len(words) > 1:
        raise UsageError(f"ports shows one session or all, not also {words[1]!a}; run it once for each")
    as_json = "json" in parsed.flags
    sessions = _chosen(words[0] if words else None)
    if "watch" in parsed.flags:
        wanted = sessions[0]["session"] if words else None  # the name may be another session's after this one's end
        from netsandbox.cli.watch import json_line, watch

        return watch(lambda: _entries(wanted), json_line if as_json else _lines)
    entries = port_entries(sessions)
    if as_json:
        import json

        print_text(json.dumps(entries, indent=2))
    else:
        print_text("\n".join(_lines(entries)))
    if not entries and not as_json:
        notice(_nothing_published(sessions) if sessions else nothing_runs())
    return 0


def _chosen(word: str | None) -> list[Status]:
    sessions = live_sessions()
    return sessions if word is None else [find(word, sessions)]


def _entries(session: str | None) -> list[Status]:
    return port_entries([status for status in live_sessions() if session in (None, status["session"])])


def _nothing_published(sessions: list[Status]) -> str:
    return unpublished(sessions) or "no port is published yet; a server that listens in the session appears here"


def _lines(entries: Any) -> list[str]:
    return columns([PORTS_TITLES, *port_rows(entries)], width=terminal_width(), yielding=PORTS_YIELDING)
