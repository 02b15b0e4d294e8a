"""The text of `netsandbox --help`, and the layout of the help of each command.

A USAGE has the lines that show the usage, then examples, then prose. Each of its lines is one logical line: it is
wrapped at spaces to the width of the terminal, and what follows the last gap of two spaces stays in its column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from netsandbox.cli.terminal import page_width, print_text, terminal_width
from netsandbox.runtime.option_parser import LIST, Option

COMMAND_GROUPS = {  # each command, in a few words
    "run a command": {
        "run": "run a command, or a shell, in the sandbox",
        "learn": "run a command online, and propose the rules that it needs",
    },
    "running sessions": {
        "exec": "run a second command in a running session",
        "logs": "print the output of a session in the background (run --detach)",
        "ps": "list the sessions that are running",
        "ports": "list the published ports of sessions and their URLs",
        "open": "show a session's server in the browser",
        "stop": "end sessions",
    },
    "answer questions of `run --ask`": {
        "pending": "list the connections and files that wait for your approval",
        "approve": "allow a waiting connection or file: once, for the session, in this project, or always",
        "deny": "refuse a waiting connection or file until the session ends",
    },
    "what happened, and why": {
        "explain": "explain the policy: for a host or path, for a past denial, or all of it",
        "audit": "read the log: tail, show, summary, verify",
        "doctor": "check this machine, and prove that a session cannot leak",
    },
    "what a session wrote": {
        "changes": "list what a session changed in its overlay (run --overlay)",
        "apply": "bring changes of an overlay into the project",
        "discard": "throw the changes of an overlay away",
        "home": "list what sessions wrote into the private home of this project, and copy it out",
    },
    "settings": {
        "init": "write a configuration file for this project",
        "trust": "trust the configuration file of a project, so that its allow rules take effect",
        "config": "show and check the merged configuration, and edit the list of writable paths",
        "profile": "list, show and check the profiles of `run`",
        "completion": "print a completion script for your shell",
    },
    "netsandbox itself": {
        "man": "show the manual page",
        "uninstall": "remove what netsandbox keeps for you, except the logs",
    },
}
ABOUT = {name: about for group in COMMAND_GROUPS.values() for name, about in group.items()}
OVERVIEW = """\
usage: netsandbox COMMAND …

  netsandbox run --allow-domain example.com -- curl https://example.com/
  netsandbox run -- npm install    in a project: the registry of npm is allowed
  netsandbox run                   your shell
  netsandbox help run              the options of a command

Run a command so that it reaches only allowed names and sees only the files it needs, with a record of every attempt."""
REPEATED = "Options with a * can be given several times."
GAP = "  "
NAMES_WIDTH, OPTIONS_WIDTH = 14, 38  # the columns of commands and of options
USAGE, MAX_MARGIN = "usage: ", 8
MIN_TEXT = 36  # a column of text narrower than this is set below its option instead


def print_overview() -> int:
    groups = [
        "\n".join([f"{title}:", *(f"  {name:<{NAMES_WIDTH - 2}}{about}" for name, about in group.items())])
        for title, group in COMMAND_GROUPS.items()
    ]
    return _print("\n\n".join([OVERVIEW, *groups]))


def print_help(usage: str, options: Sequence[Option], groups: Mapping[str, Sequence[str]] | None = None) -> int:
    """The help of a command. *groups* has titles, and the names of the options below each; those below an empty title
    are not shown, and those of no group follow."""
    known = {option.name: option for option in options}
    parts = [usage]
    for title, names in (groups or {}).items():
        found = [known.pop(name) for name in names if name in known]
        if found and title:
            parts.append(f"{title}:\n{_rows(found)}")
    if known:
        parts.append(f"{'other ' if groups else ''}options:\n{_rows(known.values())}")
    if any(option.kind == LIST for option in options):
        parts.append(REPEATED)
    return _print("\n\n".join(parts))


def _rows(options: Iterable[Option]) -> str:
    """The options as the help shows them; those with a star can be given several times."""
    rows = []
    for option in options:
        short = f"-{option.letter}, " if option.letter else "    "
        star = " *" if option.kind == LIST else ""
        name = f"  {short}--{option.name}{option.taken}{star}"
        room = OPTIONS_WIDTH - len(name)
        rows.append(f"{name}{' ' * room}{option.help}" if room > 1 else f"{name}\n{' ' * OPTIONS_WIDTH}{option.help}")
    return "\n".join(rows)


def _print(text: str) -> int:
    width = page_width()
    print_text("\n".join(row for line in text.split("\n") for row in wrapped(line, width)))
    return 0


def print_lines(lines: Iterable[str]) -> None:
    """Print *lines*, on a terminal wrapped to its width; a program gets them whole."""
    width = terminal_width()
    print_text("\n".join(lines if width is None else [row for line in lines for row in wrapped(line, width)]))


def wrapped(line: str, width: int) -> list[str]:
    """*line* in rows of at most *width* characters, broken only at spaces: a longer word has a row to itself."""
    if len(line) <= width:
        return [line]
    row, text, indent = _parts(line)
    rows: list[str] = []
    if len(row) > MAX_MARGIN and len(row) + MIN_TEXT > width:  # no room beside the first column: below it
        margin = len(row) - len(row.lstrip())
        rows, indent = ([row.rstrip()], max(MAX_MARGIN, margin + 2)) if row.strip() else ([], MAX_MARGIN)
        row = " " * indent
    is_empty = True
    for word in text.split(" "):
        if not is_empty and len(row) + 1 + len(word) > width:
            rows.append(row)
            row, is_empty = " " * indent, True
        row += word if is_empty else f" {word}"
        is_empty = False
    return [*rows, row]


def _parts(line: str) -> tuple[str, str, int]:
    """The first column of *line*, its text, and where the text's further rows begin."""
    text = line.removeprefix(USAGE).lstrip()
    margin = len(line) - len(text)
    gap = line.rfind(GAP, margin)
    if gap >= 0:
        text = line[gap:].lstrip()
        margin = len(line) - len(text)
    return line[:margin], text, margin + 2 if 0 < margin <= MAX_MARGIN and gap < 0 else margin
