"""The doctor's findings for people and for programs. Pure: findings in, lines or plain values out."""

from __future__ import annotations

from netsandbox.doctor import judgement
from netsandbox.doctor.check import MISSING, OK, Check
from netsandbox.doctor.jail import Finding
from netsandbox.frozen import frozen
from netsandbox.text import plural, printable

HEADINGS = ("probe", "expected", "what happened", "")


@frozen
class BackendReport:
    """`checks` are those of this backend alone. `unproven` is the reason why no probe ran; None if they ran."""

    name: str
    checks: list[Check]
    jail: list[Finding]
    unproven: str | None = None

    @property
    def can_run(self) -> bool:
        return not _missing(self.checks)

    @property
    def ok(self) -> bool:
        """True if nothing needed is missing and every tried probe holds. Without probes nothing is proven."""
        holding = all(finding.status in judgement.HOLDING for finding in self.jail)
        return self.can_run and bool(self.jail) and holding and self.unproven is None


@frozen
class Report:
    """`machine` are the checks that concern every backend; `backends` are in the order in which sessions try them."""

    machine: list[Check]
    backends: list[BackendReport]

    @property
    def ok(self) -> bool:
        """One backend is proven, and each other is too, or lacks something and so cannot run here."""
        sound = all(each.ok or not each.can_run for each in self.backends)
        return not _missing(self.machine) and sound and any(each.ok for each in self.backends)


def _missing(checks: list[Check]) -> int:
    return sum(check.status == MISSING for check in checks)


def as_json(report: Report) -> dict[str, object]:
    """`backend` of a row is null for a check that concerns all."""
    return {
        "v": 1,
        "ok": report.ok,
        "backends": [
            {"backend": each.name, "ok": each.ok, "can_run": each.can_run, "unproven": each.unproven}
            for each in report.backends
        ],
        "machine": [
            *({**vars(check), "backend": None} for check in report.machine),
            *({**vars(check), "backend": each.name} for each in report.backends for check in each.checks),
        ],
        "jail": [{**vars(finding), "backend": each.name} for each in report.backends for finding in each.jail],
        "unproven": None if any(each.jail for each in report.backends) else _reasons(report),
    }


def _reasons(report: Report) -> str:
    return "; ".join(f"{each.name}: {each.unproven}" for each in report.backends if each.unproven is not None)


def lines(report: Report, *, verbose: bool = False) -> list[str]:
    """The verdict, then what needs a look: all that is not as it should be. *verbose* adds the rest."""
    several = len(report.backends) > 1
    rows = [*_used_line(report), *_machine_lines(report), *(_sum(each, several=several) for each in report.backends)]
    rows += _section("This machine", _check_lines(report.machine, verbose=verbose))
    for each in report.backends:
        rows += _section(f"The backend {each.name}", _check_lines(each.checks, verbose=verbose))
        rows += _section(_jail_title(each), _jail_lines(each, verbose=verbose))
    if verbose:
        return rows
    checks = len(report.machine) + sum(len(each.checks) for each in report.backends)
    probes = sum(len(each.jail) for each in report.backends)
    return [*rows, "", f"`netsandbox doctor -v` lists all: {plural(checks, 'check')}, {plural(probes, 'probe')}."]


def _section(title: str, rows: list[str]) -> list[str]:
    return ["", title, *rows] if rows else []


def _used_line(report: Report) -> list[str]:
    """If the preferred backend cannot run, the first line says so."""
    first = report.backends[0]
    used = next((each.name for each in report.backends if each.ok), None)
    if first.can_run or used is None:
        return []
    lacking = ", ".join(check.name for check in first.checks if check.status == MISSING)
    return [f"The backend {first.name} cannot run here: {lacking} missing. Sessions use {used}."]


def _check_lines(checks: list[Check], *, verbose: bool) -> list[str]:
    rows = []
    for check in checks:
        if check.status != OK or verbose:
            rows.append(f"  {check.name:<20} {printable(check.found)}  {check.status}")
        if check.status != OK and check.remedy:
            rows.append(f"  {'':<20} {printable(check.remedy)}")
    return rows


def _jail_title(report: BackendReport) -> str:
    return f"The jail of {report.name}, tried from inside and judged by what arrived outside"


def _jail_lines(report: BackendReport, *, verbose: bool) -> list[str]:
    shown = [finding for finding in report.jail if finding.status != judgement.OK or verbose]
    if not shown:
        return []
    rows = [HEADINGS, *((each.probe, each.expected, printable(each.happened), each.status) for each in shown)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [f"  {'  '.join(_padded(row, widths))}".rstrip() for row in rows]


def _padded(row: tuple[str, str, str, str], widths: list[int]) -> list[str]:
    return [*(text.ljust(width) for text, width in zip(row[:3], widths, strict=True)), row[3]]


def _sum(report: BackendReport, *, several: bool) -> str:
    return f"{report.name}: {_summary(report)}" if several else _summary(report)


def _summary(report: BackendReport) -> str:
    counts = dict.fromkeys((judgement.OK, judgement.LEAK, judgement.FAILED, judgement.SKIPPED, judgement.NOTE), 0)
    for finding in report.jail:
        counts[finding.status] += 1
    if report.ok:
        skipped = f", {counts[judgement.SKIPPED]} cannot be tried here" if counts[judgement.SKIPPED] else ""
        notes = f", {counts[judgement.NOTE]} weaker by design" if counts[judgement.NOTE] else ""
        return f"The jail holds: {plural(counts[judgement.OK], 'probe')}{notes}{skipped}."
    if counts[judgement.LEAK]:
        leaks = plural(counts[judgement.LEAK], "probe")
        return f"THE JAIL LEAKS: {leaks} got out. Do not rely on it; please report this table."
    if missing := _missing(report.checks):
        return f"Missing: {plural(missing, 'needed thing')}; no session of it runs here until that is fixed."
    if report.unproven is not None:
        return f"Not proven: {printable(report.unproven)}"
    failed = plural(counts[judgement.FAILED], "probe")
    return f"Not proven: {failed} failed. Run it again; if that stays, please report this table."


def _machine_lines(report: Report) -> list[str]:
    missing = _missing(report.machine)
    return [f"Missing: {plural(missing, 'needed thing')}; no session runs here until that is fixed."] if missing else []
