"""A reader that leaves early is no error of ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_reader_that_left_hears_nothing_and_we_say_nothing():
    script = "from netsandbox.cli.output import put; put('x' * 1000000); put('more'); print('silent')"
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=-1, stderr=-1) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0
