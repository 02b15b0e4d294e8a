#!/usr/bin/env python3
"""Writes the parts of pages that come from tables of the code, and the JSON Schema that is shipped.

The tables of docs/configuration.md and the schema come from the table of keys, the diagram and the table of
docs/architecture.md from the table of stages of the proxy.

    scripts/pages.py docs/configuration.md netsandbox/config/netsandbox.schema.json docs/architecture.md
"""

from __future__ import annotations

import sys
from pathlib import Path

from netsandbox_proxy.flow import stage_diagram, stage_table

from netsandbox.config.key_docs import Row, rows, schema_text
from netsandbox.config.keys import KEYS

BEGIN_KEYS = "<!-- `make docs` writes the tables below from the table of keys; do not edit them by hand. -->\n"
BEGIN_STAGES = (
    "<!-- `make docs` writes the diagram below from the table of stages in proxy/netsandbox_proxy/flow.py; "
    "do not edit it by hand. -->\n"
)
END = "<!-- End of the generated part. -->\n"
HEAD = "| key | value | default | meaning | needs trust | option |\n|---|---|---|---|---|---|\n"


def key_tables() -> str:
    """Every key: a Markdown table for each table of TOML."""
    return "\n".join(f"### `[{table}]`\n{HEAD}{''.join(map(_line, rows(table)))}" for table in KEYS)


def stages() -> str:
    """The stages of a connection, as a diagram and as a table."""
    return f"```mermaid\n{stage_diagram()}```\n\n{stage_table()}"


def replaced(page: str, begin: str, content: str) -> str:
    """*page* with *content* between its markers."""
    before, found, rest = page.partition(begin)
    _, end, after = rest.partition(END)
    if not found or not end:
        raise SystemExit(f"the page lacks {END if found else begin}")
    return f"{before}{found}\n{content}\n{end}{after}"


def _line(row: Row) -> str:
    cells = (f"`{row.key}`", row.kind, row.default, row.about, row.trust, row.options)
    return "".join(f"| {cell} " if cell else "| " for cell in cells) + "|\n"


if __name__ == "__main__":
    keys_page, schema, architecture = map(Path, sys.argv[1:])
    with_keys = replaced(keys_page.read_text("utf-8"), BEGIN_KEYS, key_tables())
    with_stages = replaced(architecture.read_text("utf-8"), BEGIN_STAGES, stages())
    keys_page.write_text(with_keys, "utf-8")
    architecture.write_text(with_stages, "utf-8")
    schema.write_text(f"{schema_text()}\n", "utf-8")
