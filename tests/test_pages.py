"""What `make docs` writes is up to date: the tables of keys and the JSON Schema that is shipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from netsandbox.config import schema

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "configuration.md"


def made(page: Path, shipped: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "scripts" / "pages.py", page, shipped],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_tables_of_keys_and_the_schema_are_up_to_date(tmp_path: Path) -> None:
    page, shipped = tmp_path / "page.md", tmp_path / "schema.json"
    shutil.copy(PAGE, page)
    assert made(page, shipped).returncode == 0
    assert page.read_text("utf-8") == PAGE.read_text("utf-8"), "run `make docs`"
    assert shipped.read_text("utf-8") == Path(schema.FILE).read_text("utf-8"), "run `make docs`"


def test_a_table_that_was_edited_is_written_anew(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text("utf-8").replace("| `allow_domains` |", "| `allow_names` |"), "utf-8")
    assert page.read_text("utf-8") != PAGE.read_text("utf-8")
    assert made(page, tmp_path / "schema.json").returncode == 0
    assert page.read_text("utf-8") == PAGE.read_text("utf-8")


def test_a_page_without_its_marks_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Configuration\n", "utf-8")
    ended = made(page, tmp_path / "schema.json")
    assert ended.returncode == 1
    assert "make docs" in ended.stderr
    assert page.read_text("utf-8") == "# Configuration\n"
    assert not (tmp_path / "schema.json").exists()
