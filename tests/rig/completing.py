"""Completion scripts under test: a small command line, a `netsandbox` that answers by it, and hostile words."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from netsandbox.cli import completion
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
PROGRAM = """
import os
from netsandbox.shells.grammar import plain
from netsandbox.shells.offers import first_word, later_word
from tests.rig.completing import COMMANDS
def find(kind):
    if kind == "variables":
        return dict.fromkeys(sorted(os.environ), "")
    try:
        return dict.fromkeys(plain(open(os.path.expanduser(f"~/{kind}")).read().split("\\n")), "")
    except OSError:
        return {}
name, *words = sys.argv[3:]
known = {command.name: command for command in COMMANDS}
about = {command.name: command.about for command in COMMANDS}
offer = later_word(known[name], words, find) if words else first_word(name, about)
print("\\n".join(offer.lines()))
"""
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
    """A folder with a shell's script, where `netsandbox` knows COMMANDS, and as words of a kind those of its file."""

    def __init__(self, folder: Path, shell: str) -> None:
        self.folder = folder
        self.script = folder / "script"
        self.script.write_text(completion.script(shell, aliases=True, prompt=False), "utf-8")
        (folder / "bin").mkdir()
        program = folder / "bin" / "netsandbox"
        program.write_text(f"#!{sys.executable}\nimport sys\nsys.path[:0] = {sys.path!r}\n{PROGRAM}")
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
