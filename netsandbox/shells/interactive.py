"""Starts the user's shell if no command is given, with the mode in its prompt and the user's files, where shown.

Nothing is written: the shell reads a file of this package, which reads the user's. A shell other than these three is
started unchanged.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")
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
    return [shell], ()


def fish_quoted(text: str) -> str:
    """*text* quoted as one word of fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
