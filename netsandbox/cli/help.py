"""The text of `netsandbox --help`, and the layout of the help of each command."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from netsandbox.runtime.option_parser import LIST, Option, help_lines

ABOUT = {  # each command, in a few words
    "run": "run a command, or a shell, in the sandbox",
    "ps": "list the sessions that are running",
    "ports": "list the published ports of sessions and their URLs",
    "open": "show a session's server in the browser",
    "stop": "end sessions",
    "pending": "list the connections and files that wait for your approval (run --ask)",
    "approve": "allow a waiting connection or file: once, for the session, in this project, or always",
    "deny": "refuse a waiting connection or file until the session ends",
    "explain": "explain the policy: for a host or path, for a past denial, or all of it",
    "audit": "read the log: tail, show, summary, verify",
    "doctor": "check this machine, and prove that a session cannot leak",
    "changes": "list what a session changed in its overlay (run --overlay)",
    "apply": "bring changes of an overlay into the project",
    "discard": "throw the changes of an overlay away",
    "home": "list what sessions wrote into the private home of this project, and copy it out",
    "profile": "list, show and check the profiles of `run`",
    "config": "show and check the merged configuration, and edit the list of writable paths",
    "trust": "trust the configuration file of a project, so that its allow rules take effect",
    "init": "write a configuration file for this project",
    "learn": "run a command online, and propose the rules that it needs",
    "completion": "print a completion script for your shell",
}
_COMMANDS = "\n".join(f"  {name:<12}{about}" for name, about in ABOUT.items())
OVERVIEW = f"""\
usage: netsandbox COMMAND …

Run a command so that it reaches only allowed names and sees only the files it needs, with a record of every attempt.

  netsandbox run --allow-domain example.com -- curl https://example.com/
  netsandbox run -- npm install        (in a project: the registry of your npm is allowed)

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
    """The help of a command with many options. *groups* has titles, and the names of the options below each."""
    known = {option.name: option for option in options}
    lists = ["\n".join([f"{title}:", *help_lines([known[name] for name in names])]) for title, names in groups.items()]
    notes = [REPEATED] if any(option.kind == LIST for option in options) else []
    sys.stdout.write("\n\n".join([usage, *lists, *notes]) + "\n")
    return 0
