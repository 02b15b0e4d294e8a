"""Formats records and summaries for people. Pure: text out.

Everything from the log is shown as printable ASCII: a host name must not move the cursor, change colours or hide
itself by writing direction (attack 172).
"""

from __future__ import annotations

from collections.abc import Iterable

from netsandbox.audit.reader import Record
from netsandbox.audit.record_line import DENY
from netsandbox.audit.requests import HTTP, request_text
from netsandbox.audit.summary import UNLISTED, BudgetUse, Denied, DeniedFiles, Summary
from netsandbox.audit.verify import Report
from netsandbox.errors import UsageError
from netsandbox.policy.budgets import Account, parse_budget
from netsandbox.policy.file_denials import removal
from netsandbox.policy.reasons import DENY_RULE
from netsandbox.policy.sizes import shown_size
from netsandbox.text import GAP, columns, plural, printable

MAX_ROWS = 8
RED, GREEN, DIM, RESET = "\x1b[31m", "\x1b[32m", "\x1b[2m", "\x1b[0m"
_SHOWN = (
    *(
        "operation",
        "method",
        "path",
        "query",
        "secret",
        "place",
        "target",
        "address",
        "from",
        "to",
        "host_address",
        "host_port",
        "caller",
        "url",
        "pid",
        "exe",
    ),
    *("bytes_up", "bytes_down", "ms", "count", "qtype", "outcome", "status", "hint", "detail"),
    *("connection", "request", "id", "scope", "ttl", "by_pid", "by_uid"),
)
_WAYS = ("bytes_up", "up"), ("bytes_down", "down")


def paint(text: str, colour: str, *, coloured: bool) -> str:
    return f"{colour}{text}{RESET}" if coloured else text


def row(record: Record, *, coloured: bool) -> str:
    """One record on one line: time, verdict, event, destination, reason, the rest."""
    verdict = printable(record.get("verdict", "-"))
    colour = RED if verdict == DENY else GREEN if verdict == "allow" else DIM
    rest = " ".join(f"{name}={printable(record[name])}" for name in _SHOWN if name in record)
    columns = (
        printable(record["ts"])[11:19],
        paint(f"{verdict:<5}", colour, coloured=coloured),
        f"{printable(record['event']):<13}",
        f"{destination(record.get('host'), record.get('port')):<32}",
        f"{printable(record.get('reason', '-')):<16}",
        rest,
    )
    return " ".join(columns).rstrip()


def request_row(record: Record, *, coloured: bool) -> str:
    """A request and its end on one line: time, verdict, status, request, bytes of both bodies, duration; or why it was
    refused, and the option that would allow it."""
    verdict = printable(record.get("verdict", "-"))
    colour = RED if verdict == DENY else GREEN if verdict == "allow" else DIM
    exe = printable(record.get("exe", "")).rpartition("/")[2]
    if verdict == DENY:
        rest = [printable(record.get("reason", "-")), printable(record.get("hint", ""))]
    else:
        sizes = [f"{shown_size(record[name])} {way}" for name, way in _WAYS if type(record.get(name)) is int]
        rest = [*sizes, f"{printable(record['ms'])} ms" if "ms" in record else "no end recorded"]
    columns = (
        printable(record["ts"])[11:19],
        paint(f"{verdict:<5}", colour, coloured=coloured),
        f"{printable(record.get('status', '-')):>3}",
        f"{request_text(record):<48}",
        *filter(None, rest),
        *([f"by {exe}"] if exe else ()),
    )
    return GAP.join(columns)


def destination(host: object, port: object) -> str:
    if host is None:
        return "-" if port is None else f":{printable(port)}"
    return printable(host) if port is None else f"{printable(host)}:{printable(port)}"


def aligned(rows: Iterable[tuple[str, ...]]) -> list[str]:
    return [GAP + line for line in columns(rows)]


def summary_text(summary: Summary, *, coloured: bool) -> str:
    lines = [_heading(summary)]
    hosts = sorted(summary.allowed.values(), key=lambda item: (-item.connections, item.host))
    counts = [plural(len(found), noun) for found, noun in ((hosts, "host"), (summary.approved, "file")) if found]
    lines.append(paint(f"Allowed: {', '.join(counts) or 'nothing'}", GREEN, coloured=coloured))
    lines += aligned(
        (
            f"{printable(item.host)}:{','.join(map(str, sorted(item.ports)))}".rstrip(":"),
            f"{item.connections}x",
            f"{shown_size(item.bytes_up)} up",
            f"{shown_size(item.bytes_down)} down",
            plural(item.requests, "request") if item.requests else "",
        )
        for item in hosts
    )
    lines += [*_approved(summary), *_budgets(summary)]
    if summary.written:
        lines.append(f"Written outside of the folders that are always open: {plural(summary.written, 'path')}")
    if summary.secrets:
        lines.append(f"Secrets that were tried and stayed hidden: {', '.join(map(printable, summary.secrets))}")
    lines += [*_denials(summary, coloured=coloured), *_habits(summary)]
    if summary.dropped:
        lines.append(f"{summary.dropped} records in the middle were rotated away and are not counted here.")
    return "\n".join(lines)


def _heading(summary: Summary) -> str:
    if len(summary.sessions) > 1:
        span = f"{printable(summary.first)} to {printable(summary.last)}"
        return f"{plural(len(summary.sessions), 'session')} from {span}: {plural(summary.records, 'record')}"
    names = printable(summary.sessions[0]) if summary.sessions else "no session"
    end = "" if summary.status is None else f", exit status {summary.status}"
    state = "running" if summary.running else "ended" if summary.ended else "no session.end"
    return f"Session {names}: {summary.seconds:.1f} s, {plural(summary.records, 'record')}, {state}{end}"


def _denials(summary: Summary, *, coloured: bool) -> list[str]:
    if not summary.attempts_denied:
        return [paint("Denied: nothing", GREEN, coloured=coloured)]
    titles = {
        "egress": "Denied connections",
        HTTP: "Denied requests",
        "dns": "Denied names (DNS)",
        "udp": "Dropped UDP",
        "socket": "Refused sockets",
        "seatbelt": "Refused by Seatbelt",
    }
    events = [*titles, *sorted({item.event for item in summary.denied.values()} - titles.keys())]
    lines = []
    for event in events:
        found = summary.denied_by(event)
        if found:
            attempts = plural(sum(item.attempts for item in found), "attempt")
            title = f"{titles.get(event, f'Denied: {printable(event)}')}: {attempts}"
            lines += [paint(title, RED, coloured=coloured), *aligned(map(_denial_row, found))]
    files = [_file_row(item) for item in summary.refused_files()]
    if summary.files_unlisted:
        files.append((UNLISTED, f"{summary.files_unlisted}x", "", ""))
    if files:
        total = sum(item.attempts for item in summary.files.values()) + summary.files_unlisted
        lines += [paint(f"Denied files: {plural(total, 'attempt')}", RED, coloured=coloured), *aligned(files)]
    return lines


def _approved(summary: Summary) -> list[str]:
    """Files that the user was asked about and allowed."""
    found = summary.approved.items()
    return _first([(f"{doing} {printable(path)}", f"{count}x", "approved") for (doing, path), count in found])


def _budgets(summary: Summary) -> list[str]:
    """What was used of each, and how much that is of its tightest limit."""
    rows = [
        (printable(item.budget), f"{shown_size(item.bytes_up)} up", f"{shown_size(item.bytes_down)} down", _share(item))
        for item in summary.budgets.values()
    ]
    unknown = "" if summary.ended else ", known when the session has ended"
    return [f"Budgets: {len(rows)}{unknown}", *aligned(rows)] if rows else []


def _share(item: BudgetUse) -> str:
    try:
        account = Account(parse_budget(item.budget, "log"))
    except UsageError:  # somebody else wrote that line
        return ""
    account.up, account.down = item.bytes_up, item.bytes_down
    return f"{account.percent} %"


def _first(rows: list[tuple[str, str, str]]) -> list[str]:
    more = len(rows) - MAX_ROWS
    return aligned([*rows[:MAX_ROWS], *([(f"and {more} more", "", "")] if more > 0 else [])])


def _habits(summary: Summary) -> list[str]:
    """Denials that nobody needs to act on."""
    if not summary.habits:
        return []
    found = sorted(summary.habits.items(), key=lambda item: (-item[1], item[0]))
    rows = [(printable(what), f"{attempts}x", printable(reason)) for (what, reason), attempts in found]
    attempts = plural(sum(summary.habits.values()), "attempt")
    return [f"Tried by habit, refused, and not counted as denied: {attempts}", *_first(rows)]


def _file_row(item: DeniedFiles) -> tuple[str, ...]:
    first = max(item.paths, key=lambda path: item.paths[path])
    more = f" and {len(item.paths) - 1} more" if len(item.paths) > 1 else ""
    change = removal(item.change) if item.change and item.reason == DENY_RULE else item.change
    return f"{item.doing} {printable(first)}{more}", f"{item.attempts}x", printable(item.reason), printable(change)


def _denial_row(item: Denied) -> tuple[str, ...]:
    return destination(item.host, item.port), f"{item.attempts}x", printable(item.reason), printable(item.hint or "")


def report_text(report: Report) -> str:
    lines = [f"{printable(item.file)}:{item.line}: {item.text}" for item in report.problems[:10]]
    if len(report.problems) > 10:
        lines.append(f"... and {len(report.problems) - 10} more")
    lines += [f"note: {printable(note)}" for note in report.notes]
    if report.problems:
        verdict = f"BROKEN, first at line {report.problems[0].line} of {printable(report.problems[0].file)}"
    else:
        verdict = "ok" if report.ok else "INCOMPLETE"
    lines.append(f"{verdict}: {plural(report.records, 'record')} in {plural(report.files, 'file')}, head {report.head}")
    return "\n".join(lines)
