"""The manual page is that of the options there are, and `man` can show it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from netsandbox.cli.grammar import grammar
from tests.rig.completing import needs

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "netsandbox.1"


def test_the_page_is_up_to_date(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    made = tmp_path / "page"
    subprocess.run([sys.executable, ROOT / "scripts" / "manual.py", made], env=environment, check=True, timeout=60)
    assert made.read_text("utf-8") == PAGE.read_text("utf-8"), "run `make man`"


def test_the_manual_can_be_read_and_has_every_command_and_option() -> None:
    shown = subprocess.run(
        [needs("man"), "--warnings=all", "-l", PAGE],
        env={**os.environ, "MANWIDTH": "200", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert shown.stderr == ""
    for command in grammar():
        assert f"\n   {command.name}\n" in shown.stdout
        missing = [option.name for option in command.options if f"--{option.name}" not in shown.stdout]
        assert missing == []
