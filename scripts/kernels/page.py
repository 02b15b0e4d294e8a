"""Writes what was seen into docs/kernels.md, between its markers. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cases import CASES
from verdict import Verdict

BEGIN = "<!-- `make test-kernels WRITE=1` writes the rows below; do not edit them by hand. -->\n"
END = "<!-- End of the generated part. -->\n"
HEAD = "| case | what is special | kernel | result | doctor | backends |\n|---|---|---|---|---|---|\n"
_ROW = re.compile(r"^\| `([^`]+)` \|.*\n", re.MULTILINE)


def row(verdict: Verdict) -> str:
    seen = "; ".join(f"`{name}` {what}" for name, what in verdict.backends.items())
    if verdict.trouble:
        seen = "; ".join(filter(None, (seen, *verdict.trouble)))
    cells = (f"`{verdict.case.name}`", verdict.case.about, verdict.kernel, verdict.status, verdict.doctor, seen)
    return "".join(f"| {_cell(cell)} " for cell in cells) + "|\n"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def written(page: str, verdicts: Sequence[Verdict]) -> str:
    """*page* with the rows of these cases; rows of other cases stay as an earlier run wrote them."""
    before, begin, rest = page.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"netsandbox: the page lacks {END if begin else BEGIN}")
    rows = {match[1]: match[0] for match in _ROW.finditer(old)}
    rows |= {verdict.case.name: row(verdict) for verdict in verdicts}
    kept = "".join(rows[case.name] for case in CASES if case.name in rows)
    return f"{before}{begin}\n{HEAD}{kept}\n{end}{after}"
