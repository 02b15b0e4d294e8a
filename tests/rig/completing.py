"""Completion scripts under test: a small command line, a `netsandbox` that answers as told, and hostile words."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from netsandbox.runtime.option_parser import (
    DOMAINS,
    FILES,
    FLAG,
    LIST,
    LOGS,
    PROFILES,
    SESSIONS,
    VALUE,
    VARIABLES,
    Option,
)
from netsandbox.shells.grammar import Command

COMMANDS = (
    Command(
        "run",
        "it's run: [here]",
        "usage: netsandbox run [-- CMD]",
        (
            Option("allow-domain", LIST, "", "PATTERN", "let `this` $(through): [now]", DOMAINS),
            Option("backend", VALUE, "b", "NAME", "who's there", ("namespaces", "seatbelt")),
            Option("config", VALUE, "c", "FILE", "read it", FILES),
            Option("name", VALUE, "", "NAME", "call it so"),
            Option("pass-env", LIST, "", "NAME", "pass it", VARIABLES),
            Option("quiet", FLAG, "q", "", "say nothing"),
        ),
        PROFILES,
        {},
        runs_command=True,
    ),
    Command("stop", "end it", "usage: netsandbox stop", (Option("all", FLAG, "", "", "all"),), SESSIONS),
    Command("audit", "read it", "usage: netsandbox audit", (), (), {"show": LOGS, "verify": ()}),
)
CANARY = "canary"
HOSTILE = (
    "$(touch canary)",
    "`touch canary`",
    "x;touch canary",
    "x&touch canary&",
    "'$(touch canary)'",
    '"$(touch canary)"',
    "x\x1b]0;canary\x07",
    "x\x1b[31mred",
    "-x",
    "x y",
    "x*",
    "~root",
    "\\$(touch canary)",
    "(touch canary)",
)


def needs(shell: str) -> str:
    """Where SHELL is; the test is skipped where it is not."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    return found


class Desk:
    """A folder with a shell's script, where `netsandbox completion --words KIND` prints what was put in `words`."""

    def __init__(self, folder: Path, script: str) -> None:
        self.folder = folder
        self.script = folder / "script"
        self.script.write_text(script, "utf-8")
        (folder / "bin").mkdir()
        program = folder / "bin" / "netsandbox"
        program.write_text(f'#!/bin/sh\n[ "$1 $2" = "completion --words" ] && cat "{folder}/$3" 2>/dev/null\n')
        program.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "HOME": str(self.folder), "LANG": "C.UTF-8"}

    def words(self, kind: str, *words: str) -> None:
        (self.folder / kind).write_text("".join(f"{word}\n" for word in words), "utf-8")

    def run(self, *command: str) -> list[str]:
        """The lines that COMMAND prints; it must print no complaint."""
        done = subprocess.run(
            command,
            env={**self.environment, "SHOWN": "x"},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert done.stderr == ""
        return done.stdout.splitlines()

    @property
    def fired(self) -> bool:
        """Whether a hostile word was run."""
        return (self.folder / CANARY).exists()
