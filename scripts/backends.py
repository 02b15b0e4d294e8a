#!/usr/bin/env python3
"""Writes the table of docs/threat-model.md: how many tests show each promise in each backend, and what is weaker where.

A test names the promises that it shows in its docstring or comments (INV-n), or its file's docstring does for all of
its tests. `@pytest.mark.backend("broker")` names the backends whose sessions show it; without it the folder does.

    scripts/backends.py docs/threat-model.md
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("namespaces", "broker", "seatbelt")
SHARED = "all"
BEGIN = "<!-- `make docs` writes the table below from the marks of the tests; do not edit it by hand. -->\n"
END = "<!-- End of the generated part. -->\n"
HEAD = "| promise | all | `namespaces` | `broker` | `seatbelt` |\n|---|---|---|---|---|\n"
# The first folder that matches. Code that knows no backend is the same in all of them.
FOLDERS = (
    ("tests/backends/broker", ("broker",)),
    ("tests/backends/namespaces", ("namespaces",)),
    ("tests/backends/seatbelt", ("seatbelt",)),
    ("tests/seatbelt_model", ("seatbelt",)),
    ("tests/backends/linux", ("namespaces", "broker")),
    ("tests/integration", ("namespaces",)),
    ("tests/api", ("namespaces",)),
    ("tests/doctor", ("namespaces",)),
    ("tests/interpose/test_macos", ("seatbelt",)),
    ("tests", (SHARED,)),
)
# In a few words, kept by hand; a promise that is missing here is kept as it is by `namespaces`.
LIMITS = {
    "broker": {
        "INV-7": "the network is the host's; the broker makes every socket, the loopback and Landlock stand behind it",
        "INV-8": "where Landlock cannot keep it, nothing starts; beyond the mode `project` locks in `/tmp` are open",
        "INV-10": "by a sweep of keeper and broker",
        "INV-12": "`stat` sees what is not shown; what the host obeys in the project is compared at the end",
    },
    "seatbelt": {
        "INV-7": "the loopback is shared; doors need a token",
        "INV-10": "a daemon that left its parents runs on, confined and without a door",
        "INV-12": "`/tmp` is shared with the host",
    },
}
_TAG = re.compile(r"\bINV-\d+\b")


class Shown(NamedTuple):
    """One test with the promises and the backends that it names."""

    name: str
    promises: frozenset[str]
    backends: tuple[str, ...]


def tests_of(path: str, text: str) -> Iterator[Shown]:
    """The tests of a file; *path* is below the project's root."""
    tree = ast.parse(text)
    whole = frozenset(_TAG.findall(ast.get_docstring(tree) or ""))
    named = next((found for line in tree.body if (found := _module_backends(line))), ())
    default = next(backends for folder, backends in FOLDERS if path.startswith(folder))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            own = frozenset(_TAG.findall(ast.get_source_segment(text, node) or ""))
            marked = tuple(name for each in node.decorator_list for name in _marked(each))
            yield Shown(node.name, own | whole, marked or named or default)


def _module_backends(line: ast.stmt) -> tuple[str, ...]:
    """Those that `pytestmark` names."""
    if not isinstance(line, ast.Assign) or "pytestmark" not in {getattr(each, "id", "") for each in line.targets}:
        return ()
    values = line.value.elts if isinstance(line.value, ast.List) else [line.value]
    return tuple(name for each in values for name in _marked(each))


def _marked(node: ast.expr) -> tuple[str, ...]:
    """The arguments of `pytest.mark.backend(…)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "backend":
        return ()
    names = tuple(str(each.value) for each in node.args if isinstance(each, ast.Constant))
    strangers = set(names) - set(NAMES)
    if strangers:
        raise SystemExit(f"{', '.join(sorted(strangers))}: no such backend; use {', '.join(NAMES)}")
    return names


def counted(tests: Iterable[Shown]) -> Counter[tuple[str, str]]:
    """How many tests show each promise in each backend."""
    return Counter((promise, backend) for test in tests for promise in test.promises for backend in test.backends)


def all_tests(root: Path) -> Iterator[Shown]:
    for path in sorted((root / "tests").rglob("test_*.py")):
        yield from tests_of(path.relative_to(root).as_posix(), path.read_text("utf-8"))


def promises_of(page: str) -> dict[str, str]:
    """The promises of docs/invariants.md by number, each as its first words."""
    return dict(re.findall(r"^\| (INV-\d+) \| \*\*([^*]+?)[.,:]?\*\*", page, re.MULTILINE))


def shown(counts: Counter[tuple[str, str]], promise: str, backend: str) -> int:
    """How many tests show a promise for a backend, those of common code among them."""
    return counts[promise, SHARED] + counts[promise, backend]


def table(promises: dict[str, str], counts: Counter[tuple[str, str]]) -> str:
    strangers = sorted({promise for promise, _ in counts} - set(promises))
    if strangers:
        raise SystemExit(f"{', '.join(strangers)}: no such promise in docs/invariants.md")
    unshown = [f"{promise} on {name}" for promise in promises for name in NAMES if not shown(counts, promise, name)]
    if unshown:
        raise SystemExit(f"no test shows {', '.join(unshown)}")
    rows = []
    for promise, words in promises.items():
        cells = (_cell(counts[promise, name], LIMITS.get(name, {}).get(promise)) for name in (SHARED, *NAMES))
        rows.append(f"| {promise} {words} | {' | '.join(cells)} |\n")
    return HEAD + "".join(rows)


def _cell(count: int, limit: str | None) -> str:
    return f"{count}: {limit}" if limit else str(count)


def with_table(page: str, content: str) -> str:
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"the page lacks {BEGIN if not begin else END}")
    return f"{before}{begin}\n{content}\n{end}{after}"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    promised = promises_of((ROOT / "docs/invariants.md").read_text("utf-8"))
    content = table(promised, counted(all_tests(ROOT)))
    file.write_text(with_table(file.read_text("utf-8"), content), "utf-8")
