"""`netsandbox audit tail|show|summary|verify [SESSION|PATH]`: print the audit log, for people or as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from netsandbox_portmap import is_name

from netsandbox.audit import table
from netsandbox.audit.folding import FOLD
from netsandbox.audit.log import ROTATE
from netsandbox.audit.placed_log import log_in, newest
from netsandbox.audit.reader import Filter, Record, follow, parse_since, read_lines
from netsandbox.audit.requests import joined
from netsandbox.audit.summary import summarise
from netsandbox.audit.sweep import is_live, sweep
from netsandbox.audit.verify import verify
from netsandbox.cli.help import print_help
from netsandbox.cli.progress import progress
from netsandbox.cli.terminal import discard_stdout, notice, wants_colour
from netsandbox.errors import NetsandboxError, UsageError
from netsandbox.paths import LOG_NAME, home, list_sessions, session_dir
from netsandbox.policy.file_rules import is_within
from netsandbox.runtime.option_parser import DOMAINS, FILES, FLAG, LOGS, VALUE, Option, Parsed, parse
from netsandbox.session.recorded_names import first_record, newest_log_of
from netsandbox.session.sessions_client import live_sessions
from netsandbox.text import did_you_mean, shell_quoted, single_line

ACTIONS = ("tail", "show", "summary", "verify")
EVENTS = (
    *("session.start", "session.exec", "session.end", "dns", "egress", "egress.end", "http", "http.end", "approval"),
    *("udp", "socket", "bind", "listen", "publish", "ingress"),
    *("rewrite", "file", "exec", "seatbelt", "policy", FOLD, "audit.rotate", "audit.seal"),
)
OPTIONS = (
    Option("denied", FLAG, "", "", "only denials"),
    Option("host", VALUE, "", "PATTERN", "only this host: example.com, *.example.com, **.example.com", DOMAINS),
    Option("since", VALUE, "", "TIME", "only newer ones: 45s, 10m, 2h, 3d or an ISO time"),
    Option("event", VALUE, "", "EVENT", "only this event: egress, dns, file, socket, …", EVENTS),
    Option("http", FLAG, "", "", "only requests of inspected connections, each with its end on one line"),
    Option("lines", VALUE, "n", "N", "tail: how many records (20)"),
    Option("follow", FLAG, "f", "", "tail: print new records until the session ends"),
    Option("all", FLAG, "", "", "summary: of all sessions whose logs are kept"),
    Option("folder", VALUE, "", "DIR", "show, summary: of all sessions that ran in this folder or below", FILES),
    Option("fail-on-denied", FLAG, "", "", "summary: exit status 1 if anything was denied"),
    Option("json", FLAG, "", "", "for programs"),
    Option("help", FLAG, "h", "", "this text"),
)
ACTIONS_OF = {
    **dict.fromkeys(("follow", "lines"), ("tail",)),
    **dict.fromkeys(("fail-on-denied", "all"), ("summary",)),
    "folder": ("show", "summary"),
    "json": ACTIONS,
}
FILTERED_ACTIONS = ACTIONS[:3]  # these take the options that choose records; verify needs every record
FRAME = ("session.start", "session.end", ROTATE)
WORDS = dict.fromkeys(ACTIONS, LOGS)
USAGE = """\
usage: netsandbox audit tail|show|summary|verify [SESSION|PATH] [OPTIONS]

  netsandbox audit summary                     the newest session
  netsandbox audit show --denied --since 10m
  netsandbox audit summary --folder . --since 7d    what ran in this project this week
  netsandbox audit summary --fail-on-denied    in CI

  tail      the last records
  show      all records
  summary   per host and file: what was allowed, what was denied and the option that would allow it
  verify    whether the log is as it was written; exit status 1 when it is not

SESSION is a name, an id or a unique part of an id; without it the newest session is read. A name means the running \
session, or the newest that had it. PATH is a log, or a folder whose newest log is read."""


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """The action and its options."""

    action: str
    target: str | None
    keep: Filter
    lines: int
    follow: bool
    fail_on_denied: bool
    json: bool


def main(argv: list[str]) -> int:
    """Run the subcommand; *argv* is what follows `netsandbox audit`. The exit status."""
    try:
        return _run(argv)
    except NetsandboxError as error:
        notice(f"{error}")
        return error.status
    except BrokenPipeError:
        discard_stdout()
        return 0
    except KeyboardInterrupt:
        return 130


def _run(argv: list[str]) -> int:
    parsed = parse(argv, OPTIONS, "netsandbox audit")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    query = read_query(parsed)
    command = f"audit {query.action}"
    folder = parsed.values.get("folder")
    has_several = "all" in parsed.flags or folder is not None
    paths = _kept_logs(query, folder) if has_several else [find_log(query.target, command)]
    if query.action == "summary":
        status = _summary(query, paths)
    elif folder is not None:
        status = max((_show(query, path) for path in paths), default=0)
    else:
        status = {"tail": _tail, "show": _show, "verify": _verify}[query.action](query, *paths)
    sys.stdout.flush()
    sweep()
    return status


def read_query(parsed: Parsed) -> AuditQuery:
    """An option that the action does not use is an error, so that nobody trusts a filter that was ignored."""
    action, target = _read_words(parsed)
    flags, values = parsed.flags, parsed.values
    for name in sorted([*flags, *values]):
        actions = ACTIONS_OF.get(name, FILTERED_ACTIONS)
        if action not in actions:
            raise UsageError(f"audit {action} takes no --{name}; it is for audit {' and '.join(actions)}")
        if values.get(name) == "":
            raise UsageError(f"--{name} needs a value; see `netsandbox audit --help`")
    if values.get("event") not in (None, *EVENTS):
        raise UsageError(f"no event is called {values['event']!a}; --event takes {', '.join(EVENTS)}")
    since = values.get("since")
    moment = None if since is None else parse_since(since, datetime.now(UTC))
    return AuditQuery(
        action,
        target,
        Filter(
            denied="denied" in flags,
            host=values.get("host"),
            since=moment,
            event=values.get("event"),
            http="http" in flags,
        ),
        _line_count(values.get("lines")),
        follow="follow" in flags,
        fail_on_denied="fail-on-denied" in flags,
        json="json" in flags,
    )


def _read_words(parsed: Parsed) -> tuple[str, str | None]:
    words = [*parsed.words, *(parsed.command or ())]
    if not words:
        raise UsageError(f"audit needs one of {', '.join(ACTIONS)}; try `netsandbox audit summary`")
    if words[0] not in ACTIONS:
        advice = did_you_mean(words[0], ACTIONS, f"use one of {', '.join(ACTIONS)}")
        raise UsageError(f"audit knows no {words[0]!a}; {advice}")
    if len(words) > 2:
        raise UsageError(f"audit {words[0]} reads one log, not also {words[2]!a}; run it once for each")
    return words[0], words[1] if len(words) > 1 else None


def find_log(target: str | None, command: str) -> str:
    """The log that *target* means: a path, the name of a session, its id or a unique part of that; None is the newest
    session. *command* is what the user called, for messages."""
    if target is not None and ("/" in target or os.path.isfile(target)):
        return _newest_in(target, command) if os.path.isdir(target) else target
    named = _log_named(target) if target is not None and is_name(target) else None
    if named is not None:
        return named
    logs = {name: os.path.join(session_dir(name), LOG_NAME) for name in list_sessions()}
    found = [name for name, path in logs.items() if (target is None or target in name) and os.path.exists(path)]
    if target is None:
        _check_newest(found, command)
    if not found:
        raise NetsandboxError(
            f"no session is called {target!a}; correct its name or id, or write the path of a log:"
            f" `netsandbox {command} PATH`"
        )
    if target is not None and len(found) > 1:
        raise UsageError(f"{target!a} fits {len(found)} sessions; write more of the id, such as {found[0]}")
    return logs[found[0]]


def _log_named(name: str) -> str | None:
    """The log of the running session with this name, or of the newest one that had it."""
    for status in live_sessions():
        if status["name"] == name and status["audit_log"] is not None:
            return str(status["audit_log"])
    return newest_log_of(name)


def _check_newest(found: list[str], command: str) -> None:
    """*found* are the sessions whose logs are where they usually are; a newer one may have placed its own."""
    placed = newest()
    if placed is not None and not (found and found[0] > placed[0]):
        message = single_line(
            f"the newest session wrote its log elsewhere: `netsandbox {command} {shell_quoted(placed[1])}` reads it"
        )
        if not found:
            raise NetsandboxError(message)
        notice(f"{message}; this is the newest of the others")
    elif not found:
        raise NetsandboxError("no session has left a log yet; run one with `netsandbox run`")


def _newest_in(folder: str, command: str) -> str:
    try:
        found = log_in(folder)
    except OSError as error:
        raise NetsandboxError(f"cannot look into {folder!a}: {error.strerror}; name a log in it") from None
    if found is None:
        raise NetsandboxError(f"{folder!a} has no session's log; name one: `netsandbox {command} PATH`")
    return found


def _records(path: str) -> Iterator[Record]:
    """The records at *path*. Damaged lines are counted and reported, since somebody may want to hide them."""
    good = bad = 0
    for line in read_lines(path):
        if line.record is None:
            bad += 1
        else:
            good += 1
            yield line.record
    if bad and not good:
        raise NetsandboxError(f"{path!a} holds no audit record; give a session id or an audit log")
    if bad:
        notice(f"{bad} damaged lines were left out; run `netsandbox audit verify {path!a}`")


def _print(records: Iterable[Record], query: AuditQuery) -> int:
    """How many there were."""
    colours, count = wants_colour(sys.stdout), 0
    row = table.request_row if query.keep.http else table.row
    for record in records:
        print(json.dumps(record, separators=(",", ":")) if query.json else row(record, coloured=colours))
        count += 1
    return count


def _kept(query: AuditQuery, path: str) -> Iterable[Record]:
    """The chosen records; for people each request is one line with its end."""
    found = filter(query.keep, _records(path))
    return joined(found) if query.keep.http and not query.json else found


def _show(query: AuditQuery, path: str) -> int:
    if not _print(_kept(query, path), query) and query.keep.http and not query.json:
        notice("no such request was inspected; `netsandbox run --inspect HOST` records the requests to a host")
    return 0


def _tail(query: AuditQuery, path: str) -> int:
    if not query.follow:
        _print(deque(_kept(query, path), maxlen=query.lines), query)
        return 0
    last: deque[Record] | None = deque(maxlen=query.lines)
    for record in follow(path):
        if record is None:
            _print(last or (), query)
            last = None
            sys.stdout.flush()
        elif query.keep(record) and last is not None:
            last.append(record)
        elif query.keep(record):
            _print([record], query)
    _print(last or (), query)
    return 0


def _line_count(text: str | None) -> int:
    if text is None:
        return 20
    if not (text.isascii() and text.isdigit() and len(text) < 8):
        raise UsageError(f"-n {text!a} is not a number of records; write for instance -n 50")
    return int(text)


def _kept_logs(query: AuditQuery, folder: str | None) -> list[str]:
    """The logs at their usual places, the oldest first; with *folder* of the sessions that began in it or below. A log
    that ended before `--since` is not read."""
    if query.target is not None:
        option = "--all" if folder is None else "--folder"
        raise UsageError(f"{option} reads several logs; leave out {query.target!a}, or {option}")
    since = 0.0 if query.keep.since is None else datetime.fromisoformat(query.keep.since).timestamp()
    paths = [os.path.join(session_dir(name), LOG_NAME) for name in reversed(list_sessions())]
    found = [path for path in paths if os.path.exists(path) and os.path.getmtime(path) >= since]
    if folder is None:
        return found
    real = os.path.realpath(folder)
    of_folder = [path for path in found if is_within(str(first_record(path).get("folder") or ""), real)]
    if not of_folder:
        raise NetsandboxError(
            f"no session of {folder!a} has left such a log; `netsandbox audit summary --all` reads all"
        )
    return of_folder


def _summary(query: AuditQuery, paths: list[str]) -> int:
    # The frame of the session is no attempt: a filter on hosts must not make it look unfinished.
    records = (each for path in paths for each in _records(path) if query.keep(each) or each["event"] in FRAME)
    with progress("reading the log"):
        summary = summarise(records, os.path.realpath(home()))
        summary.running = len(paths) == 1 and not summary.ended and is_live(paths[0])
    if query.json:
        print(json.dumps(summary.as_json(), indent=2))
    else:
        print(table.summary_text(summary, coloured=wants_colour(sys.stdout)))
    return 1 if query.fail_on_denied and summary.attempts_denied else 0


def _verify(query: AuditQuery, path: str) -> int:
    with progress("checking the log"):
        report = verify(path)
    if query.json:
        print(json.dumps({"ok": report.ok, **asdict(report)}, indent=2))
    else:
        print(table.report_text(report))
    return 0 if report.ok else 1
