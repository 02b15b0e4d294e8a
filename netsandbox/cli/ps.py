"""`netsandbox ps`: the sessions that are running now."""

from __future__ import annotations

import time

from netsandbox.backends.linux.kept_overlays import KeptOverlays
from netsandbox.backends.linux.unsettled import settle_killed
from netsandbox.cli.help import print_help
from netsandbox.cli.session_table import PS_TITLES, PS_YIELDING, ps_rows
from netsandbox.cli.terminal import notice, print_text, terminal_width
from netsandbox.errors import UsageError
from netsandbox.paths import state_home
from netsandbox.runtime.option_parser import FLAG, Option, parse
from netsandbox.session.session_status import Status
from netsandbox.session.sessions_client import is_suspended, live_sessions, nothing_runs, silent_sessions, survey
from netsandbox.text import columns, few, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FIGURES = ("processes", "cpu_seconds", "memory_bytes")
OPTIONS = (
    Option("json", FLAG, "", "", "for programs"),
    Option("watch", FLAG, "w", "", "update the list until Ctrl-C"),
    Option("help", FLAG, "h", "", "this text"),
)
USAGE = """\
usage: netsandbox ps [--json] [--watch]

List your running sessions: name, age, policy, attempts, memory, ports with links and command."""


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox ps")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    if parsed.words or parsed.command is not None:
        raise UsageError("ps takes no arguments; `netsandbox ports NAME` shows one session's ports")
    as_json = "json" in parsed.flags
    for line in settle_killed(state_home()):
        notice(line)
    if "watch" in parsed.flags:
        import sys

        from netsandbox.cli.watch import json_line, watch

        is_terminal = sys.stdout.isatty()
        return watch(live_sessions if is_terminal else _without_usage, json_line if as_json else _lines)
    sessions, silent = survey()
    if as_json:
        import json

        print_text(json.dumps(sessions, indent=2))
    else:
        print_text("\n".join(_lines(sessions)))
    for status in silent_sessions(silent):
        notice(_silent_line(status))
    if not sessions and not silent and not as_json:
        notice(nothing_runs())
    _report_kept({str(session["name"]) for session in sessions})
    return 0


def _silent_line(status: Status) -> str:
    name = printable(status["name"])
    if is_suspended(status["session"]):
        return f"{name} is suspended; `fg` in its terminal continues it, `netsandbox stop {name}` ends it"
    return f"{name} is running but does not answer; see `netsandbox audit tail {name}`"


def _without_usage() -> list[Status]:
    """What they use changes all the time, and would be news every second."""
    return [{key: value for key, value in status.items() if key not in FIGURES} for status in live_sessions()]


def _report_kept(running: set[str]) -> None:
    names = [name for name in KeptOverlays(state_home()).names() if name not in running]
    if names:
        notice(f"{few(names)} ended and kept changes; see `netsandbox changes`")


def _lines(sessions: Any) -> list[str]:
    return columns([PS_TITLES, *ps_rows(sessions, time.time())], width=terminal_width(), yielding=PS_YIELDING)
