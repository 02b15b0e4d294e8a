"""Starts the user's shell if no command is given, with the mode in its prompt and the user's files, where shown.

Nothing is written: the shell reads a file of this package, which reads the user's. Another shell is started
unchanged, except that dash does without job control.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")
# At its end dash gives the terminal back to the process group that it had at the start. That group is not one of the
# session's process namespace, so with job control it ends with an error and the status 2.
ENDING_BADLY = ("dash", "busybox")
SHOWN_MODES = ("offline", "localhost", "filtered", "online")
TITLED = ("xterm", "screen", "tmux", "rxvt", "alacritty", "foot", "wezterm", "ghostty")
ZDOTDIR, KEPT = "ZDOTDIR", "NETSANDBOX_ZDOTDIR"


def interactive(shell: str, outer: Mapping[str, str]) -> tuple[list[str], tuple[tuple[str, str], ...]]:
    """The command that starts *shell*, and the variables that it needs besides *outer*, its present ones."""
    kind = os.path.basename(shell)
    if kind == "bash":
        return [shell, "--rcfile", os.path.join(FILES, "start.bash")], ()
    if kind == "zsh":
        kept = ((KEPT, outer[ZDOTDIR]),) if ZDOTDIR in outer else ()
        return [shell], (*kept, (ZDOTDIR, os.path.join(FILES, "zsh")))
    if kind == "fish":
        return [shell, "--init-command", f"source {fish_quoted(os.path.join(FILES, 'prompt.fish'))}"], ()
    if os.path.basename(os.path.realpath(shell)) in ENDING_BADLY:
        return [shell, "+m"], ()
    return [shell], ()


def title(mode: str, term: str) -> tuple[str, str]:
    """What sets the title of a terminal of the type *term* to the *mode*, and what restores it (xterm's control
    sequences: the terminal keeps titles on a stack); nothing for types that may print it."""
    if mode not in SHOWN_MODES or not term.startswith(TITLED):
        return "", ""
    return f"\x1b[22;2t\x1b]2;[sandbox:{mode}]\x07", "\x1b[23;2t"


def fish_quoted(text: str) -> str:
    """*text* quoted as one word of fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
