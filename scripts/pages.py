#!/usr/bin/env python3
"""Writes what is made from the table of keys: the tables of docs/configuration.md and the JSON Schema that is shipped.

scripts/pages.py docs/configuration.md netsandbox/config/netsandbox.schema.json
"""

from __future__ import annotations

import sys
from pathlib import Path

from netsandbox.config.key_docs import Row, rows
from netsandbox.config.keys import KEYS
from netsandbox.config.schema import text

BEGIN = "<!-- From here on made by `make docs` from the table of keys; not edited by hand. -->\n"
END = "<!-- Up to here. -->\n"
HEAD = "| key | value | unless said | what it is | needs trust | option |\n|---|---|---|---|---|---|\n"


def tables() -> str:
    """Every key, a table of Markdown for each table of TOML."""
    return "\n".join(f"### `[{table}]`\n{HEAD}{''.join(map(_line, rows(table)))}" for table in KEYS)


def with_tables(page: str) -> str:
    """*page* with the tables between the marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"the page lacks {BEGIN if not begin else END}")
    return f"{before}{begin}\n{tables()}\n{end}{after}"


def _line(row: Row) -> str:
    cells = (f"`{row.key}`", row.kind, row.default, row.about, row.trust, row.options)
    return "".join(f"| {cell} " if cell else "| " for cell in cells) + "|\n"


if __name__ == "__main__":
    page, schema = map(Path, sys.argv[1:])
    page.write_text(with_tables(page.read_text("utf-8")), "utf-8")
    schema.write_text(f"{text()}\n", "utf-8")
