"""Programs under a profile on a Mac, by sandbox-exec, and what came of their act in one word."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.rig.mac_questions import ALLOWED, DENIED

SANDBOX_EXEC = "/usr/bin/sandbox-exec"
FREE = "(version 1)\n(allow default)\n"
SECONDS = 30
on_a_mac = [
    pytest.mark.macos,
    pytest.mark.skipif(sys.platform != "darwin", reason="asks Seatbelt, which only a Mac has"),
]


def confined(profile: str, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SANDBOX_EXEC, "-p", profile, *command], capture_output=True, text=True, timeout=SECONDS, check=False
    )


def probe(profile: str, code: str, *arguments: str) -> str:
    """What *code* answers under *profile*: a word, the name of an errno, or why there is no answer."""
    done = confined(profile, sys.executable, "-I", "-c", code, *arguments)
    found = re.search(r"^answer: (.+)$", done.stdout, re.MULTILINE)
    return found.group(1) if found else f"no answer, status {done.returncode}: {done.stderr.strip()[-300:]}"


def is_answer(*said: str) -> bool:
    return not any(each.startswith("no answer") for each in said)


def verdict(said: str) -> str:
    """Seatbelt refuses with EPERM, for files sometimes EACCES; any other outcome came after it had let the act pass."""
    if not is_answer(said):
        return said
    return DENIED if said in ("EPERM", "EACCES") else ALLOWED
