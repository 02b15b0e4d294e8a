"""Why a command could not be executed, as shells say it, and what to do about that. Loaded when it has happened."""

from __future__ import annotations

import errno
import os

from netsandbox.errors import CommandError
from netsandbox.text import shell_quoted

SHELL_WORDS = ("alias", "cd", "eval", "exec", "exit", "export", "set", "source", "type", "ulimit", "umask", "unset")


def exec_failure(command: str, number: int, path: str) -> CommandError:
    """The error with the text and exit status of shells: 127 not found, 126 found but not executable.

    execvp(3) fails with EACCES too if a folder of *path* cannot be entered; no command was found then.
    """
    missing = number in (errno.ENOENT, errno.ENOTDIR)
    if number == errno.EACCES and "/" not in command:
        missing = not any(os.path.exists(os.path.join(folder, command)) for folder in path.split(":"))
    if missing:
        return CommandError(f"{command}: command not found; {_missing_advice(command, path)}", 127)
    if os.path.isdir(command):
        return CommandError(f"{command}: this is a folder; name a program, or change to the folder first", 126)
    if number == errno.EPERM:  # capabilities(7): a program with file capabilities does not start without them
        what = f"{command}: it needs an administrator's rights (file capabilities), which no session has"
        return CommandError(f"{what}; use a program that needs none, such as curl instead of ping", 126)
    advice = "make it executable, or write its interpreter before it, such as `sh` or `python3`"
    return CommandError(f"{command}: {os.strerror(number)}; {advice}", 126)


def _missing_advice(command: str, path: str) -> str:
    """For a program that only the host sees, how to show it; for what only a shell understands, how it is written for
    one."""
    places = [command] if "/" in command else [os.path.join(folder, command) for folder in path.split(":")]
    found = next((place for place in places if os.path.isfile(place) and os.access(place, os.X_OK)), None)
    if found is not None:
        folder = os.path.dirname(os.path.abspath(found))
        environment = os.path.dirname(folder)
        shown = environment if os.path.exists(f"{environment}/pyvenv.cfg") else folder
        return f"it exists, but this session does not see it: show it with --allow-read {shell_quoted(shown)}"
    word = command.partition("=")[0]
    if "=" in command and word.isidentifier():
        return "to set a variable, write `env` before it"
    if " " in command:
        return "a command with spaces is one word here: leave out the quotes, or write it after `sh -c`"
    if command in SHELL_WORDS:
        return "it is a shell built-in: write it after `sh -c`"
    return "check the path" if "/" in command else "check the spelling and $PATH"
