"""Formats records and summaries for people. Pure: text out.

Everything from the log is shown as printable ASCII: a host name must not move the cursor, change colours or hide
itself by writing direction (attack 172).
"""

from __future__ import annotations

from collections.abc import Iterable

from netsandbox.audit.reader import Record
from netsandbox.audit.record_line import DENY
from netsandbox.audit.summary import UNLISTED, Denied, DeniedFiles, Summary
from netsandbox.audit.verify import Report
from netsandbox.policy.file_denials import removal
from netsandbox.policy.reasons import DENY_RULE
from netsandbox.text import GAP, columns, plural, printable

MAX_ROWS = 8
RED, GREEN, DIM, RESET = "\x1b[31m", "\x1b[32m", "\x1b[2m", "\x1b[0m"
_SHOWN = (
    *(
        "operation",
        "path",
        "place",
        "target",
        "address",
        "from",
        "to",
        "host_address",
        "host_port",
        "url",
        "pid",
        "exe",
    ),
    *("bytes_up", "bytes_down", "ms", "count", "qtype", "outcome", "status", "hint", "detail"),
    *("id", "scope", "ttl", "by_pid", "by_uid"),
)
_UNIT = 1024


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


def destination(host: object, port: object) -> str:
    if host is None:
        return "-" if port is None else f":{printable(port)}"
    return printable(host) if port is None else f"{printable(host)}:{printable(port)}"


def size(count: int) -> str:
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < _UNIT:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= _UNIT
    return f"{amount:.1f} TiB"


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
            f"{size(item.bytes_up)} up",
            f"{size(item.bytes_down)} down",
        )
        for item in hosts
    )
    lines += _approved(summary)
    if summary.written:
        lines.append(f"Written outside of the folders that are always open: {plural(summary.written, 'path')}")
    if summary.secrets:
        lines.append(f"Secrets that were tried and stayed hidden: {', '.join(map(printable, summary.secrets))}")
    lines += [*_denials(summary, coloured=coloured), *_habits(summary)]
    if summary.dropped:
        lines.append(f"{summary.dropped} records in the middle were rotated away and are not counted here.")
    return "\n".join(lines)


def _heading(summary: Summary) -> str:
    names = ", ".join(printable(name) for name in summary.sessions[-3:]) or "no session"
    more = f" and {len(summary.sessions) - 3} before" if len(summary.sessions) > 3 else ""
    end = "" if summary.status is None else f", exit status {summary.status}"
    state = "ended" if summary.ended else "no session.end"
    return f"Session {names}{more}: {summary.seconds:.1f} s, {plural(summary.records, 'record')}, {state}{end}"


def _denials(summary: Summary, *, coloured: bool) -> list[str]:
    if not summary.attempts_denied:
        return [paint("Denied: nothing", GREEN, coloured=coloured)]
    titles = {
        "egress": "Denied connections",
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
