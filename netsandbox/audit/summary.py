"""Summarises a log, by host and by file. Pure: records in, a value out.

A folded record (`count`) stands for that many attempts. An allowed connection is counted by its `egress` record and
its bytes by its `egress.end`. Denials that programs bring about by habit are listed apart and not counted as denied.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from netsandbox.audit.denials import doing, wanted
from netsandbox.audit.folding import FOLD
from netsandbox.audit.log import ROTATE
from netsandbox.audit.reader import Record
from netsandbox.audit.record_line import ALLOW, DENY, FILE_EVENTS, MORE_REFUSED
from netsandbox.audit.requests import HTTP, request_text
from netsandbox.policy.habits import did_well, is_habit

UNLISTED = "others, only counted"  # in place of the targets of a flood


@dataclass(slots=True)
class Allowed:
    host: str
    connections: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    ports: set[int] = field(default_factory=set)
    requests: int = 0  # of inspected connections


@dataclass(slots=True)
class Denied:
    event: str
    host: str
    port: int | None
    reason: str
    attempts: int = 0
    hint: str | None = None


@dataclass(slots=True)
class DeniedFiles:
    """Paths that one change would open: an option (`hint`), or leaving out a rule."""

    doing: str
    reason: str
    change: str
    attempts: int = 0
    paths: dict[str, int] = field(default_factory=dict)  # attempts


@dataclass(slots=True)
class BudgetUse:
    """Of several sessions, the one that used most."""

    budget: str
    bytes_up: int = 0
    bytes_down: int = 0


@dataclass(slots=True)
class Summary:
    sessions: list[str] = field(default_factory=list)
    first: str | None = None
    last: str | None = None
    records: int = 0
    dropped: int = 0
    ended: bool = False
    running: bool = False
    status: int | None = None
    allowed: dict[str, Allowed] = field(default_factory=dict)
    denied: dict[tuple[str, str, int | None, str], Denied] = field(default_factory=dict)
    files: dict[tuple[str, str, str], DeniedFiles] = field(default_factory=dict)
    files_unlisted: int = 0  # refused, and only counted
    habits: dict[tuple[str, str], int] = field(default_factory=dict)  # attempts, by what was tried and the reason
    approved: dict[tuple[str, str], int] = field(default_factory=dict)  # uses of a file, by what was done and its path
    written: int = 0  # paths, where `learn` recorded them
    secrets: list[str] = field(default_factory=list)  # hidden places that were tried then
    budgets: dict[str, BudgetUse] = field(default_factory=dict)

    @property
    def attempts_denied(self) -> int:
        hosts, files = self.denied.values(), self.files.values()
        return sum(item.attempts for item in hosts) + sum(item.attempts for item in files) + self.files_unlisted

    @property
    def seconds(self) -> float:
        if self.first is None or self.last is None:
            return 0.0
        try:
            last = datetime.now(UTC) if self.running else datetime.fromisoformat(self.last)
            return (last - datetime.fromisoformat(self.first)).total_seconds()
        except ValueError:
            return 0.0

    def denied_by(self, event: str) -> list[Denied]:
        """Denials of *event*, most frequent first."""
        return sorted((item for item in self.denied.values() if item.event == event), key=_frequency)

    def refused_files(self) -> list[DeniedFiles]:
        """Most frequent first."""
        return sorted(self.files.values(), key=lambda item: (-item.attempts, item.change))

    def as_json(self) -> dict[str, Any]:
        return {
            "sessions": self.sessions,
            "first": self.first,
            "last": self.last,
            "seconds": round(self.seconds, 3),
            "records": self.records,
            "dropped": self.dropped,
            "ended": self.ended,
            "running": self.running,
            "status": self.status,
            "allowed": [{**asdict(item), "ports": sorted(item.ports)} for item in self.allowed.values()],
            "budgets": [asdict(item) for item in self.budgets.values()],
            "denied": [asdict(item) for item in sorted(self.denied.values(), key=_frequency)],
            "denied_files": [asdict(item) for item in self.refused_files()],
            "files_unlisted": self.files_unlisted,
            "habits": [
                {"what": what, "reason": reason, "attempts": attempts}
                for (what, reason), attempts in self.habits.items()
            ],
            "approved": [
                {"doing": doing, "path": path, "count": count} for (doing, path), count in self.approved.items()
            ],
            "written": self.written,
            "secrets": self.secrets,
        }


def _frequency(item: Denied) -> tuple[int, str]:
    return -item.attempts, item.host


def summarise(records: Iterable[Record], home: str = "") -> Summary:
    """*home* is the user's, where programs look for files by habit."""
    summary = Summary()
    waiting: list[Record] = []  # denials that were a habit if the command succeeds
    for record in records:
        if summary.sessions and record["session"] != summary.sessions[-1]:
            _add_waiting(summary, waiting, succeeded=False)
        if record.get("verdict") != DENY or "place" in record:
            _add(summary, record)
        elif is_habit(record, home):
            _count(summary, record)
            _add_habit(summary, record)
        elif is_habit(record, home, succeeded=True):
            _count(summary, record)
            waiting.append(record)
        else:
            _add(summary, record)
        if record["event"] == "session.end":
            _add_waiting(summary, waiting, succeeded=summary.status is not None and did_well(summary.status))
    _add_waiting(summary, waiting, succeeded=False)
    return summary


def _add_waiting(summary: Summary, waiting: list[Record], *, succeeded: bool) -> None:
    for record in waiting:
        (_add_habit if succeeded else _add_file)(summary, record)
    waiting.clear()


def _add_habit(summary: Summary, record: Record) -> None:
    event = str(record.get("of", record["event"]))
    what = wanted(event, record) if event in FILE_EVENTS or "path" in record else str(record.get("exe", UNLISTED))
    key = (what, str(record.get("reason", "?")))
    summary.habits[key] = summary.habits.get(key, 0) + _number(record, "count", 1)


def _count(summary: Summary, record: Record) -> None:
    summary.records += 1
    summary.first = summary.first or record["ts"]
    summary.last = record["ts"]
    if not summary.sessions or summary.sessions[-1] != record["session"]:
        summary.sessions.append(record["session"])
        summary.ended = False


def _add(summary: Summary, record: Record) -> None:
    _count(summary, record)
    event, verdict = record["event"], record.get("verdict")
    if event == "file" and "place" in record:
        _add_secret(summary, record)
    elif verdict == DENY and event in FILE_EVENTS:
        _add_file(summary, record)
    elif verdict == DENY:
        _add_denied(summary, event, record)
    elif event in ("egress", "egress.end") and verdict in (None, ALLOW):
        _add_allowed(summary, event, record)
    elif verdict == ALLOW and event == HTTP:
        host = str(record.get("host", "?"))
        summary.allowed.setdefault(host, Allowed(host)).requests += 1
    elif verdict == ALLOW and event in FILE_EVENTS:
        key = (doing(record.get("operation")), str(record.get("path", "?")))
        summary.approved[key] = summary.approved.get(key, 0) + _number(record, "count", 1)
    elif event == "file":
        summary.written += "path" in record
        summary.files_unlisted += _number(record, "count") if record.get("detail") == MORE_REFUSED else 0
    elif event == "session.start":
        for text in _items(record, "budgets", str):
            summary.budgets.setdefault(text, BudgetUse(text))
    elif event == "session.end":
        for used in _items(record, "budgets", dict):
            _add_budget(summary, used)
        summary.ended = True
        summary.status = _number(record, "status") if "status" in record else None
    elif event == ROTATE:
        summary.dropped = _number(record, "dropped")


def _add_allowed(summary: Summary, event: str, record: Record) -> None:
    host = str(record.get("host", "?"))
    item = summary.allowed.setdefault(host, Allowed(host))
    if event == "egress":
        item.connections += _number(record, "count", 1)
        if type(record.get("port")) is int:
            item.ports.add(record["port"])
    item.bytes_up += _number(record, "bytes_up")
    item.bytes_down += _number(record, "bytes_down")


def _add_budget(summary: Summary, used: dict[str, Any]) -> None:
    found = BudgetUse(str(used.get("budget", "?")), _number(used, "bytes_up"), _number(used, "bytes_down"))
    most = summary.budgets.get(found.budget)
    if most is None or found.bytes_up + found.bytes_down >= most.bytes_up + most.bytes_down:
        summary.budgets[found.budget] = found


def _add_secret(summary: Summary, record: Record) -> None:
    place = str(record["place"])
    if place not in summary.secrets:
        summary.secrets.append(place)


def _add_file(summary: Summary, record: Record) -> None:
    change = next((record[name] for name in ("rule", "hint") if isinstance(record.get(name), str)), "")
    key = (doing(record.get("operation")), str(record.get("reason", "?")), change)
    item = summary.files.setdefault(key, DeniedFiles(*key))
    path, times = str(record.get("path", "?")), _number(record, "count", 1)
    item.attempts += times
    item.paths[path] = item.paths.get(path, 0) + times


def _add_denied(summary: Summary, event: str, record: Record) -> None:
    if event == FOLD:
        event = str(record.get("of", "?"))
        host = UNLISTED
    else:
        host = _wanted(event, record)
    port = record["port"] if type(record.get("port")) is int and event != HTTP else None
    reason = str(record.get("reason", "?"))
    item = summary.denied.setdefault((event, host, port, reason), Denied(event, host, port, reason))
    item.attempts += _number(record, "count", 1)
    if isinstance(record.get("hint"), str):
        item.hint = record["hint"]


def _wanted(event: str, record: Record) -> str:
    """The target of a denial by a socket's path, a host; of Seatbelt's refusals the operation and its object."""
    if event == HTTP:
        return request_text(record)
    if event == "seatbelt":
        on = record.get("path") or record.get("target") or record.get("address") or ("port" in record and "*")
        return " ".join(str(word) for word in (record.get("operation") or record.get("detail", "?"), on) if word)
    names = ("path", "host", "address", "detail", "exe")
    return next((str(record[name]) for name in names if record.get(name)), "?")


def _number(record: Record, name: str, default: int = 0) -> int:
    value = record.get(name, default)
    return value if type(value) is int else default


def _items(record: Record, name: str, kind: type) -> list[Any]:
    values = record.get(name)
    return [each for each in values if isinstance(each, kind)] if isinstance(values, list) else []
