"""Help texts: what a newcomer reads first."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from netsandbox.runtime.option_parser import LIST, Option, help_lines

ABOUT = {  # each command, in a few words
    "run": "run a command, or a shell, in the sandbox",
    "ps": "list the sessions that are running",
    "ports": "list where their servers are reached from here",
    "open": "show a session's server in the browser",
    "stop": "end sessions",
    "pending": "list what sessions started with --ask are asking for",
    "approve": "let it through: once, for the session, in this project, or always",
    "deny": "refuse it for as long as the session runs",
    "explain": "explain the policy here: for a host, for a past denial, or all of it",
    "audit": "read the log: tail, show, summary, verify",
    "doctor": "check this machine and prove the jail on it",
    "profile": "list and show the profiles that run takes, and find mistakes in them",
    "config": "show and check what your configuration files say together, and list paths to write",
    "trust": "let the configuration of a project open what it asks for",
    "init": "write a configuration file for this project",
    "learn": "run a command online, and propose the rules that it needs",
    "completion": "print a script that makes your shell complete all this",
}
_COMMANDS = "\n".join(f"  {name:<12}{about}" for name, about in ABOUT.items())
OVERVIEW = f"""\
usage: netsandbox COMMAND …

Run a command so that it reaches only the names it is allowed, with a record of every attempt.

  netsandbox run --allow-domain example.com -- curl https://example.com/
  netsandbox run -- npm install        (in a project: the registry that your npm uses is let through by itself)

commands:
{_COMMANDS}

`netsandbox COMMAND --help` lists the options of each, `man netsandbox` those of all.
"""
REPEATED = "Options with a * can be given several times."


def print_overview() -> int:
    sys.stdout.write(OVERVIEW)
    return 0


def print_help(usage: str, options: Sequence[Option]) -> int:
    return print_grouped_help(usage, options, {"options": [option.name for option in options]})


def print_grouped_help(usage: str, options: Sequence[Option], groups: Mapping[str, Sequence[str]]) -> int:
    """For a command with too many options for one list; *groups*: a title and the names below it."""
    known = {option.name: option for option in options}
    lists = ["\n".join([f"{title}:", *help_lines([known[name] for name in names])]) for title, names in groups.items()]
    notes = [REPEATED] if any(option.kind == LIST for option in options) else []
    sys.stdout.write("\n\n".join([usage, *lists, *notes]) + "\n")
    return 0
