"""`netsandbox open`: shows a session's server in the host's browser."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess

from netsandbox.cli.help import print_help
from netsandbox.cli.session_table import first_entries, port_entries, unpublished
from netsandbox.cli.terminal import notice, print_text
from netsandbox.errors import NetsandboxError, UsageError
from netsandbox.runtime.option_parser import FLAG, SESSIONS, Option, parse
from netsandbox.session.session_status import Status
from netsandbox.session.sessions_client import find, live_sessions, nothing_runs
from netsandbox.system import IS_MACOS
from netsandbox.text import printable

XDG_OPEN = "xdg-open"
OPTIONS = (
    Option("print", FLAG, "p", "", "print the URL and open nothing"),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = SESSIONS
USAGE = """\
usage: netsandbox open [NAME] [PORT] [--print]

  netsandbox open shop
  netsandbox open shop 5173

Open the URL of a session's server in your browser: $BROWSER, else the desktop's own. Without a browser it is printed. \
NAME is needed where several sessions have servers. PORT is the port inside; without it, the one published first."""
LISTED = 10


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox open")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    name, port = read_words([*parsed.words, *(parsed.command or ())])
    url = url_of(choose(live_sessions(), name, port))
    if "print" in parsed.flags:
        print_text(url)
    elif not _show(url):
        print_text(url)
        notice("no browser was found; open this URL yourself, or set BROWSER")
    return 0


def read_words(words: list[str]) -> tuple[str | None, int | None]:
    """NAME and PORT, either of which can be left out: a name is never only digits."""
    if len(words) > 2:
        raise UsageError(f"open takes a NAME and a PORT, not also {words[2]!a}; run it once for each")
    if not words:
        return None, None
    if len(words) == 1 and not _is_number(words[0]):
        return words[0], None
    return (words[0] if len(words) == 2 else None), _port(words[-1])


def _port(word: str) -> int:
    if not (_is_number(word) and len(word) <= 5 and 0 < int(word) < 65536):
        raise UsageError(f"{word[:80]!a} is not a port; write for instance `netsandbox open NAME 3000`")
    return int(word)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit()


def choose(sessions: list[Status], name: str | None, port: int | None) -> Status:
    """The one published port that is meant; an error lists the ports if there is not exactly one."""
    if not sessions:
        raise NetsandboxError(nothing_runs())
    meant = sessions if name is None else [find(name, sessions)]
    there = port_entries(meant)
    found = first_entries(meant) if port is None else [entry for entry in there if entry["port"] == port]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"several sessions have servers; choose one: {_listed(there if port is None else found)}")
    if there:
        raise NetsandboxError(f"port {port} is not published; choose one: {_listed(there)}")
    otherwise = "no port is published yet; start a server in the session, then see `netsandbox ports`"
    raise NetsandboxError(unpublished(meant) or otherwise)


def _listed(entries: list[Status]) -> str:
    ways = [f"`netsandbox open {printable(entry['name'])} {entry['port']}`" for entry in entries[:LISTED]]
    return ", ".join(ways) + (", …" if len(entries) > LISTED else "")


def url_of(entry: Status) -> str:
    """A browser takes more than addresses of pages: only those are passed to it."""
    url = entry["url"] or ""
    if not (url.startswith(("http://", "https://")) and url.isascii() and url.isprintable() and " " not in url):
        raise NetsandboxError(f"port {entry['port']} has no URL to open; connect to it by `netsandbox ports`")
    return str(url)


def _show(url: str) -> bool:
    for command in browsers(url):
        try:
            quiet = subprocess.DEVNULL if command[0] == XDG_OPEN else None  # it complains at length; we say it shortly
            if subprocess.run(command, check=False, stderr=quiet).returncode == 0:
                return True
        except OSError:  # not to be executed after all: the next one may be
            continue
    return False


def browsers(url: str) -> list[list[str]]:
    """Commands that show *url*, best first. BROWSER is a list with colons, `%s` in it stands for the URL."""
    commands = []
    for text in os.environ.get("BROWSER", "").split(":"):
        try:
            words = shlex.split(text)
        except ValueError:  # a quote that is not closed
            continue
        if words:
            placed = [word.replace("%s", url) for word in words]
            commands.append(placed if placed != words else [*words, url])
    commands.append(["open" if IS_MACOS else XDG_OPEN, url])
    return [command for command in commands if shutil.which(command[0])]
