#!/usr/bin/env python3
"""Writes the manual page from the tables of options, of keys and of docs/cli.md: scripts/manual.py docs/netsandbox.1"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from netsandbox.cli.grammar import grammar
from netsandbox.config.key_docs import Row, rows
from netsandbox.config.keys import KEYS
from netsandbox.runtime.option_parser import LIST, OPTIONAL, Option
from netsandbox.shells.grammar import Command

ROOT = Path(__file__).resolve().parents[1]
HEAD = r""".\" Made by `make man` from the tables of the command line; not edited by hand.
.TH NETSANDBOX 1
.SH NAME
netsandbox \- run a command so that it reaches only allowed names and sees only the files it needs
.SH SYNOPSIS
.B netsandbox
.I COMMAND
[\fIOPTIONS\fR] [\fIWORDS\fR]
.SH DESCRIPTION
Runs a command, or a shell, in a sandbox: it reaches only allowed names, and every attempt is recorded. Long options
take \fB\-\-name value\fR or \fB\-\-name=value\fR. Everything after \fB\-\-\fR is the command. Options with a star can
be given several times.
.SH COMMANDS
"""
CONFIGURATION = r""".SH CONFIGURATION
TOML files, from the lowest rank to the highest: your own, \fB$XDG_CONFIG_HOME/netsandbox/config.toml\fR or
\fB~/.config/netsandbox/config.toml\fR; the project's, \fB.netsandbox.toml\fR; the file of \fB\-\-config\fR; the command
line. A project's file may widen the policy after \fBnetsandbox trust\fR. \fBnetsandbox config show\fR prints each value
with its file and line.
"""
TAIL = r""".SH SEE ALSO
The pages in the source: an introduction in README.md, the command line in docs/cli.md, rules in docs/policy.md,
configuration in docs/configuration.md, shells in docs/shells.md.
"""
OF_THIS_SYSTEM = re.compile(r"\b(isolate|fail|rewire-\w+) \(default\)")  # which is another one on a Mac


def manual() -> str:
    commands = "".join(map(_command, grammar()))
    pages = (ROOT / "docs" / "cli.md").read_text("utf-8")
    status = _listed(".SH EXIT STATUS OF RUN", _section(pages, "### Exit status"))
    environment = _listed(".SH ENVIRONMENT", _section(pages, "## Environment"))
    return f"{HEAD}{commands}{status}{_configuration()}{environment}{TAIL}"


def _command(command: Command) -> str:
    usage, _, rest = command.usage.partition("\n\n")
    lines = [f".SS {command.name}", _roff(f"{command.about[0].upper()}{command.about[1:]}."), ".PP", ".nf"]
    lines += [_roff(line.removeprefix("usage: ").strip()) for line in usage.splitlines()]
    lines.append(".fi")
    for line in rest.splitlines():  # examples and tables stay as they are, prose is filled
        lines += [".nf", _roff(line), ".fi"] if line.startswith(" ") else [_roff(line), ".br"] if line else [".PP"]
    return "\n".join([*lines, *map(_option, command.options)]) + "\n"


def _option(option: Option) -> str:
    spelled = [f"-{option.letter}"] * bool(option.letter) + [f"--{option.name}"]
    names = [f"\\fB{_roff(name)}\\fR" for name in spelled]
    value = f"\\fI{_roff(option.taken)}\\fR" if option.kind == OPTIONAL else ""
    value = value or (f" \\fI{_roff(option.value)}\\fR" if option.value else "")
    star = " *" if option.kind == LIST else ""
    about = OF_THIS_SYSTEM.sub(r"\1", option.help)
    return f".TP\n{', '.join(names)}{value}{star}\n{_roff(about)}"


def _configuration() -> str:
    return CONFIGURATION + "".join(_key(table, row) for table in KEYS for row in rows(table))


def _key(table: str, row: Row) -> str:
    usual = f" Default: {_plain(row.default)}." if row.default else ""
    return f".TP\n\\fB{table}.{row.key}\\fR ({_roff(_plain(row.kind))})\n{_roff(_plain(row.about))}.{_roff(usual)}\n"


def _section(text: str, heading: str) -> str:
    """Up to the next heading of any level."""
    return text.partition(f"\n{heading}\n")[2].partition("\n#")[0]


def _listed(heading: str, text: str) -> str:
    """The first table of *text*."""
    return f"{heading}\n" + "".join(f".TP\n\\fB{_roff(name)}\\fR\n{_roff(about)}\n" for name, about in _rows(text))


def _rows(text: str) -> Iterator[tuple[str, str]]:
    found = re.search(r"(?:^\|.*\n?)+", text, re.MULTILINE)
    for line in found.group().splitlines()[2:] if found else ():
        name, about = (cell.strip() for cell in line.strip("|").split("|", 1))
        yield _plain(name), _plain(about)


def _plain(text: str) -> str:
    """The text of Markdown, without its marks."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "").replace("\\|", "|")


def _roff(text: str) -> str:
    tame = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{tame}" if tame.startswith((".", "'")) else tame


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(manual(), "utf-8")
