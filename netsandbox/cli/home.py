"""`netsandbox home`: the files that sessions of this project wrote into their private home.

The user's own programs do not see that home. A file of it is copied out one at a time, after the user has seen it: a
session may have written anything there.
"""

from __future__ import annotations

import json
import os
import sys
import time

from netsandbox.backends.linux.private_folders import PrivateFolders
from netsandbox.backends.linux.private_home import KeptFile, PrivateHome
from netsandbox.cli.help import print_help
from netsandbox.cli.terminal import confirm, notice, print_text, terminal_width
from netsandbox.errors import NetsandboxError, UsageError
from netsandbox.paths import home, short, state_home
from netsandbox.policy.file_rules import is_within, path_rule
from netsandbox.runtime.option_parser import FLAG, Option, parse
from netsandbox.runtime.project import find_project
from netsandbox.session.sessions_client import live_sessions
from netsandbox.system import IS_MACOS
from netsandbox.text import columns, did_you_mean, printable, single_line

OPTIONS = (
    Option("yes", FLAG, "y", "", "do not ask"),
    Option("json", FLAG, "", "", "for programs"),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = {"list": (), "keep": (), "clear": ()}
USAGE = """\
usage: netsandbox home [list] [--json]
       netsandbox home keep PATH [--yes]
       netsandbox home clear [--yes]

  netsandbox home keep ~/.config/tool/settings.json

A session has a private home, which is kept for the next session of the same project.

  list    the files that sessions wrote there; caches and histories are left out
  keep    show one of these files, and copy it to the same place in your own home; nothing is replaced
  clear   remove the private home of this project; `netsandbox run --fresh-home` does without it once"""
MAX_SHOWN = 200  # lines


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox home")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    if IS_MACOS:
        raise UsageError("a session on a Mac has no private home; it writes where the rules allow it")
    words = [*parsed.words, *(parsed.command or ())] or ["list"]
    if words[0] not in WORDS or len(words) != (2 if words[0] == "keep" else 1):
        usage = "write `netsandbox home`, `home keep PATH` or `home clear`"
        if words[0] in WORDS:
            raise UsageError(f"home {words[0]} takes {'one path' if words[0] == 'keep' else 'no arguments'}; {usage}")
        raise UsageError(f"home {words[0][:80]!a} is not a command; {did_you_mean(words[0], WORDS, usage)}")
    project = _project()
    found = PrivateHome(PrivateFolders(state_home(), project).kept_home, os.path.realpath(home()))
    asks = "yes" not in parsed.flags
    if words[0] == "keep":
        return _keep(found, words[1], asks=asks)
    if words[0] == "clear":
        return _clear(found, project, asks=asks)
    return _list(found.files(), project, as_json="json" in parsed.flags)


def _project() -> str:
    """The folder that names the private home, as in a session that is started here."""
    own = os.path.realpath(home())
    try:
        project = find_project(os.path.realpath(os.getcwd()), own)
    except OSError:
        raise NetsandboxError("the working folder was removed; go to the folder of the project") from None
    return project.folder if project else own


def _list(files: list[KeptFile], project: str, *, as_json: bool) -> int:
    if as_json:
        rows = [{"path": each.name, "size": each.size, "changed": each.changed} for each in files]
        print_text(json.dumps({"v": 1, "project": project, "files": rows}, indent=2))
    elif files:
        lines = [["PATH", "BYTES", "CHANGED"], *(_row(each) for each in files)]
        print_text("\n".join(columns(lines, width=terminal_width(), yielding=((0, 20),))))
    else:
        notice(f"sessions of {short(project)} left no files in their private home")
    return 0


def _row(file: KeptFile) -> list[str]:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(file.changed))
    return [single_line(short(file.name)), str(file.size), when]


def _keep(found: PrivateHome, word: str, *, asks: bool) -> int:
    own = os.path.realpath(home())
    path = path_rule(word, "home keep", own, home).path
    folder = os.path.realpath(os.path.dirname(path))
    path = os.path.join(folder, os.path.basename(path))
    if not is_within(path, own) or path == own:
        raise UsageError(f"{word!a} is not in your home; `netsandbox home` lists the files")
    try:
        content = found.read(path)
    except OSError as error:
        raise NetsandboxError(
            f"{word!a} cannot be read in the private home ({error.strerror}); `netsandbox home` lists the files"
        ) from None
    if os.path.lexists(path):
        raise NetsandboxError(f"{word!a} exists in your home and is not replaced; move it away first")
    print_text("\n".join(_shown(content)))
    if asks and not (sys.stdin.isatty() and confirm(f"Copy this to {single_line(short(path))}?")):
        notice("nothing was copied; add --yes, or answer y")
        return 1
    _copy(content, path)
    return 0


def _shown(content: bytes) -> list[str]:
    """The content, with everything escaped that a terminal would obey."""
    lines = content.decode("utf-8", "backslashreplace").splitlines()
    more = [f"… and {len(lines) - MAX_SHOWN} more lines"] if len(lines) > MAX_SHOWN else []
    return [*(printable(line) for line in lines[:MAX_SHOWN]), *more]


def _copy(content: bytes, path: str) -> None:
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(content)
    except OSError as error:
        raise NetsandboxError(f"cannot write {path!a}: {error.strerror}; free space, or copy it by hand") from None


def _clear(found: PrivateHome, project: str, *, asks: bool) -> int:
    running = [each["name"] for each in live_sessions() if is_within(str(each.get("folder")), project)]
    if running:
        raise NetsandboxError(f"{printable(running[0])} is a session of this project; stop it first")
    question = f"Remove the private home of {single_line(short(project))}, {len(found.files())} files?"
    if asks and not (sys.stdin.isatty() and confirm(question)):
        notice("nothing was removed; add --yes, or answer y")
        return 1
    try:
        found.clear()
    except FileNotFoundError:
        pass
    except (OSError, RecursionError) as error:
        raise NetsandboxError(f"not all of it could be removed ({error}); remove it by hand") from None
    return 0
