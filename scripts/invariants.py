#!/usr/bin/env python3
"""Writes the second table of docs/invariants.md: the files whose code or tests carry the tag of each invariant (INV-n).

scripts/invariants.py docs/invariants.md
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CODE = ("netsandbox", "proxy", "dns", "portmap", "interpose")
SUFFIXES = {".py", ".c", ".h"}
BEGIN = "<!-- `make docs` writes the table below from the tags; do not edit it by hand. -->\n"
END = "<!-- End of the generated part. -->\n"
HEAD = "| no. | code | tests |\n|---|---|---|\n"

Files = dict[str, list[str]]


def tagged(folders: Iterable[str]) -> Files:
    """For each tag the files below *folders* that carry it, as paths below the project's root."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*")):
        if path.suffix in SUFFIXES:
            for tag in set(re.findall(r"\bINV-\d+\b", path.read_text("utf-8"))):
                found[tag].append(path.relative_to(ROOT).as_posix())
    return found


def with_table(page: str, code: Files, tests: Files) -> str:
    """*page* with a table of a row for each of its invariants."""
    promised = re.findall(r"^\| (INV-\d+) \| \*\*", page, re.MULTILINE)
    strangers = sorted({*code, *tests} - set(promised))
    if strangers:
        raise SystemExit(f"{', '.join(strangers)}: no such promise in docs/invariants.md")
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"the page lacks {BEGIN if not begin else END}")
    rows = (f"| {tag} | {_listed(code.get(tag, []))} | {_listed(tests.get(tag, []))} |\n" for tag in promised)
    return f"{before}{begin}\n{HEAD}{''.join(rows)}\n{end}{after}"


def _listed(files: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in files)


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(with_table(file.read_text("utf-8"), tagged(CODE), tagged(["tests"])), "utf-8")
