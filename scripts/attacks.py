#!/usr/bin/env python3
"""Fills the last column of docs/attacks.md: the test files that try each attack.

A test names an attack by its mark, `@pytest.mark.attack(14)`, or in a docstring or comment ("attack 14", "attacks 7 and
21"). A mark without a row is an error; a row without a test reads "no test yet".

    scripts/attacks.py docs/attacks.md
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NO_TEST = "no test yet"
_ROW = re.compile(r"^\| (\d+) \|(.*)\|[^|]*\|$", re.MULTILINE)
_MARK = re.compile(r"mark\.attack\(([\d, ]+)\)")
_MENTION = re.compile(r"\battacks? (\d+(?:(?:, | and | to )\d+)*)", re.IGNORECASE)


def numbers_in(text: str) -> Iterator[int]:
    """Every attack that a test file names; "2 to 9" names those between as well."""
    for listed in (*_MARK.findall(text), *_MENTION.findall(text)):
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", listed):
            yield from range(int(first), int(last or first) + 1)


def files_by_attack(root: Path) -> dict[int, list[str]]:
    """The test files that try each attack, as paths below *root*."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    for path in sorted((root / "tests").rglob("test_*.py")):
        for number in set(numbers_in(path.read_text("utf-8"))):
            found[number].append(path.relative_to(root).as_posix())
    return found


def with_tests(page: str, tests: dict[int, list[str]]) -> str:
    """*page* with the last cell of every row filled."""
    rows = {int(number) for number, _ in _ROW.findall(page)}
    missing = [f"attack {number} ({', '.join(tests[number])})" for number in sorted(set(tests) - rows)]
    if missing:
        raise SystemExit(f"no row for {'; '.join(missing)}; add it to docs/attacks.md")

    def row(match: re.Match[str]) -> str:
        files = ", ".join(f"`{name}`" for name in tests.get(int(match[1]), []))
        return f"| {match[1]} |{match[2]}| {files or NO_TEST} |"

    return _ROW.sub(row, page)


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(with_tests(file.read_text("utf-8"), files_by_attack(ROOT)), "utf-8")
