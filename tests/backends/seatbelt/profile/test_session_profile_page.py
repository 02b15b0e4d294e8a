"""The README of the Seatbelt model lists every check and every assumption, and no others."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.seatbelt_model.models import all_models

ROOT = Path(__file__).resolve().parents[4]
PAGE = (ROOT / "tests/seatbelt_model/README.md").read_text("utf-8")
PLACES = {"error": 1, "warning": 1, "Finding": 2, "_probe": 4}  # of the check's name among the arguments


def checks() -> set[str]:
    found = set()
    for path in (ROOT / "tests/seatbelt_model").glob("lint*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in PLACES:
                name = node.args[PLACES[node.func.id]]
                if isinstance(name, ast.Constant):
                    found.add(str(name.value))
    return found


def test_every_check_has_its_row() -> None:
    table = PAGE.partition("| check | severity | what |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)}
    assert listed == checks()
    assert len(listed) > 20


def test_every_report_is_named_and_the_models_are_counted() -> None:
    reports = {
        word for model in all_models() for each in model.assumptions for word in re.findall(r"\w+#\d+", each.reported)
    }
    told = set(re.findall(r"\w+#\d+", PAGE))
    assert told == reports
    assert f"all {len(list(all_models()))}" in PAGE
