"""Prints results for people and writes them for programs."""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import asdict
from pathlib import Path

from figures import Result, Row, Target

TIMES, NOTHING = "\u00d7", "\u2013"
WORDS = {True: "met", False: "MISSED", None: "not compared"}


def machine() -> dict[str, object]:
    """The facts about the machine that the figures depend on."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def show(result: Result) -> None:
    print(f"\n## {result.title}")
    width = max((len(row.name) for row in result.rows), default=0)
    for row in result.rows:
        print(_row(row, width))
    for note in result.notes:
        print(f"  note: {note}")
    for target in result.targets:
        print(f"  target: {_target(target)}")


def summary(results: list[Result]) -> None:
    targets = [target for result in results for target in result.targets]
    print("\n## Targets")
    for target in targets:
        print(f"  {_target(target)}")
    counts = {word: sum(WORDS[target.met] == word for target in targets) for word in WORDS.values()}
    print("  " + ", ".join(f"{count} {word}" for word, count in counts.items()))


def save(path: Path, results: list[Result]) -> None:
    path.write_text(
        json.dumps({"machine": machine(), "results": [_plain(result) for result in results]}, indent=1) + "\n"
    )


def tables(results: list[Result]) -> str:
    """The figures in the form of docs/performance.md: the targets, then each measurement."""
    lines = ["| target | asked | found | |", "|---|---|---|---|"]
    lines += [_target_line(target) for result in results for target in result.targets]
    for result in results:
        lines += ["", f"### {result.title[0].upper()}{result.title[1:]}", ""]
        if result.rows:
            lines += ["| | median | p10 to p90 | ratio (p10 to p90) |", "|---|---|---|---|"]
            lines += [_row_line(row) for row in result.rows]
            lines.append("")
        lines += [f"- {note}" for note in result.notes]
    return "\n".join(lines) + "\n"


def _target_line(target: Target) -> str:
    sign = "≥" if target.at_least else "≤"
    unit = TIMES if target.unit == "x" else target.unit
    found = NOTHING if target.actual is None else f"{number(target.actual)} {unit}"
    word = {True: "met", False: "**missed**", None: "not compared"}[target.met]
    return f"| {target.text} | {sign} {number(target.limit)} {unit} | {found} | {word} |"


def _row_line(row: Row) -> str:
    value, ratio = row.value, row.ratio
    span = f"{number(value.low)} to {number(value.high)}" if value.count > 1 else ""
    compared = f"{ratio.median:.3g} {TIMES} {row.against} ({ratio.low:.3g} to {ratio.high:.3g})" if ratio else ""
    return f"| {row.name} | {number(value.median)} {row.unit} | {span} | {compared} |"


def _row(row: Row, width: int) -> str:
    value = row.value
    span = f"({number(value.low)} to {number(value.high)})" if value.count > 1 else ""
    line = f"  {row.name:{width}}  {number(value.median):>9} {row.unit:8} {span:22}"
    if row.ratio is None:
        return line.rstrip()
    ratio = row.ratio
    return f"{line} {ratio.median:8.3g} x {row.against} ({ratio.low:.3g} to {ratio.high:.3g})"


def _target(target: Target) -> str:
    bound = "at least" if target.at_least else "at most"
    actual = "nothing" if target.actual is None else f"{number(target.actual)} {target.unit}"
    return f"[{WORDS[target.met]}] {target.text}: {actual}, {bound} {number(target.limit)} {target.unit}"


def number(value: float) -> str:
    """Three significant figures, and separators for thousands."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _plain(result: Result) -> dict[str, object]:
    plain = asdict(result)
    for entry, target in zip(plain["targets"], result.targets, strict=True):
        entry["met"] = target.met
    return plain
