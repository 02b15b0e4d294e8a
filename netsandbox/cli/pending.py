"""`netsandbox pending`: the approvals that sessions wait for."""

from __future__ import annotations

import json
import time
from typing import Any

from netsandbox.cli.help import print_help
from netsandbox.cli.session_table import PENDING_TITLES, PENDING_YIELDING, Row, pending_entries, pending_rows
from netsandbox.cli.terminal import notice, print_text, terminal_width
from netsandbox.cli.watch import json_line, watch
from netsandbox.errors import UsageError
from netsandbox.runtime.option_parser import FLAG, Option, parse
from netsandbox.session.session_status import Status
from netsandbox.session.sessions_client import live_sessions, nothing_runs
from netsandbox.text import GAP, columns

OPTIONS = (
    Option("json", FLAG, "", "", "for programs"),
    Option("watch", FLAG, "w", "", "update the list until Ctrl-C"),
    Option("help", FLAG, "h", "", "this text"),
)
USAGE = """\
usage: netsandbox pending [--json] [--watch]

List the connections and files of your sessions with --ask that wait for your answer. Answer with `netsandbox approve \
ID` or `netsandbox deny ID`. What has no answer in time is refused."""


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox pending")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    if parsed.words or parsed.command is not None:
        raise UsageError("pending takes no arguments; `netsandbox approve ID` answers")
    as_json = "json" in parsed.flags
    if "watch" in parsed.flags:
        return watch(lambda: pending_entries(live_sessions()), _json_line if as_json else _lines)
    sessions = live_sessions()
    entries = pending_entries(sessions)
    print_text(json.dumps(_timed(entries), indent=2) if as_json else "\n".join(_lines(entries)))
    if not entries and not as_json:
        notice(_nothing(sessions))
    return 0


def _nothing(sessions: list[Status]) -> str:
    if not sessions:
        return nothing_runs()
    asking = any(status.get("ask") or status.get("ask_files") for status in sessions)
    return "nothing waits for an answer" + ("" if asking else ": no session that runs was started with --ask")


def _timed(entries: Any) -> list[dict[str, object]]:
    """With the seconds that are left, which are no news while one watches."""
    now = time.time()
    return [{**entry, "seconds": max(0, int(entry["until"] - now))} for entry in entries]


def _json_line(entries: Any) -> list[str]:
    return json_line(_timed(entries))


def _lines(entries: Any) -> list[str]:
    rows = [PENDING_TITLES, *pending_rows(entries, time.time())]
    return columns(rows, width=_width(rows), yielding=PENDING_YIELDING)


def _width(rows: list[Row]) -> int | None:
    """The terminal's, but room for each name: one whose end is cut off looks like another, and is approved as that."""
    width = terminal_width()
    return width if width is None else max(width, *(len(GAP.join(row[:2])) for row in rows))
