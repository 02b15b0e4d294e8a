"""The doctor's findings for people and for programs. Pure: findings in, lines or plain values out."""

from __future__ import annotations

from netsandbox.doctor import judgement
from netsandbox.doctor.check import MISSING, OK, Check
from netsandbox.doctor.jail import Finding
from netsandbox.frozen import frozen
from netsandbox.text import printable

HEADINGS = ("probe", "expected", "what happened", "")


@frozen
class Report:
    """`unproven` is the reason why no probe ran; None if they ran."""

    machine: list[Check]
    jail: list[Finding]
    unproven: str | None = None

    @property
    def ok(self) -> bool:
        """True if nothing needed is missing and every tried probe holds. Without probes nothing is proven."""
        lacking = any(check.status == MISSING for check in self.machine)
        holding = all(finding.status in judgement.HOLDING for finding in self.jail)
        return not lacking and bool(self.jail) and holding and self.unproven is None


def as_json(report: Report) -> dict[str, object]:
    return {
        "v": 1,
        "ok": report.ok,
        "machine": [vars(check) for check in report.machine],
        "jail": [vars(finding) for finding in report.jail],
        "unproven": report.unproven,
    }


def lines(report: Report) -> list[str]:
    return ["This machine", *_machine_lines(report.machine), "", *_jail_lines(report), "", _sum(report)]


def _machine_lines(checks: list[Check]) -> list[str]:
    rows = []
    for check in checks:
        rows.append(f"  {check.name:<20} {printable(check.found)}  {check.status}")
        if check.status != OK and check.remedy:
            rows.append(f"  {'':<20} {printable(check.remedy)}")
    return rows


def _jail_lines(report: Report) -> list[str]:
    if report.unproven is not None:
        return [f"The jail was not proven: {printable(report.unproven)}"]
    rows = [HEADINGS, *((each.probe, each.expected, printable(each.happened), each.status) for each in report.jail)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    title = "The jail, tried from inside and judged by what arrived outside"
    return [title, *(f"  {'  '.join(_padded(row, widths))}".rstrip() for row in rows)]


def _padded(row: tuple[str, str, str, str], widths: list[int]) -> list[str]:
    return [*(text.ljust(width) for text, width in zip(row[:3], widths, strict=True)), row[3]]


def _sum(report: Report) -> str:
    counts = dict.fromkeys((judgement.OK, judgement.LEAK, judgement.FAILED, judgement.SKIPPED), 0)
    for finding in report.jail:
        counts[finding.status] += 1
    missing = sum(check.status == MISSING for check in report.machine)
    if report.ok:
        skipped = f", {counts[judgement.SKIPPED]} cannot be tried here" if counts[judgement.SKIPPED] else ""
        return f"The jail holds: {counts[judgement.OK]} probes{skipped}."
    if counts[judgement.LEAK]:
        return f"THE JAIL LEAKS: {counts[judgement.LEAK]} probes got out. Do not rely on it; please report this table."
    if missing:
        return f"{missing} needed things are missing; no session runs here until that is fixed."
    return (
        f"Not proven: {counts[judgement.FAILED]} probes failed. Run it again; if that stays, please report this table."
    )
