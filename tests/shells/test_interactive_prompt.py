"""The code of the indicator beside hooks of the user's own: it comes last, once, and leaves the status alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from netsandbox.shells.interactive import FILES
from tests.rig.completing import needs

INSIDE = {"NETSANDBOX_SESSION": "x", "SANDBOX_MODE": "online", "TERM": "xterm", "PATH": os.environ["PATH"]}


def told(shell: str, text: str, env: dict[str, str] | None = None) -> str:
    """What TEXT prints, where `@` stands for reading the indicator's code."""
    code = text.replace("@", f"source {Path(FILES, f'prompt.{shell}')}")
    bare = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    command = [needs(shell), *bare, "-c", code]
    done = subprocess.run(command, env=env or INSIDE, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "_netsandbox_prompt"),
        ("PROMPT_COMMAND='mine;';", "mine;\n_netsandbox_prompt"),
        ("PROMPT_COMMAND='mine # all';", "mine # all\n_netsandbox_prompt"),
        ("PROMPT_COMMAND=(one two);", "one|two|_netsandbox_prompt"),
        ("set -u;", "_netsandbox_prompt"),
    ],
)
def test_in_bash_it_comes_after_hooks_of_the_user_and_once(before: str, after: str) -> None:
    assert told("bash", f'{before} @; @; IFS="|"; printf %s "${{PROMPT_COMMAND[*]}}"') == after


def test_in_zsh_it_comes_after_hooks_of_the_user_and_once() -> None:
    assert told("zsh", "precmd_functions=(one); @; @; print -n $precmd_functions") == "one _netsandbox_prompt"


def test_the_prompt_gets_it_once() -> None:
    shown = r"\[\e[32m\][sandbox:online]\[\e[0m\] mine> "
    assert told("bash", "PS1='mine> '; @; _netsandbox_prompt; _netsandbox_prompt; printf %s \"$PS1\"") == shown
    zsh = "PROMPT='mine> '; @; _netsandbox_prompt; _netsandbox_prompt; print -rn -- $PROMPT"
    assert told("zsh", zsh) == "%F{green}[sandbox:online]%f mine> "
    fish = "function fish_prompt; echo -n 'mine> '; end; @; @; fish_prompt"
    assert told("fish", fish, {**INSIDE, "NO_COLOR": "1"}) == "[sandbox:online] mine> "


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_hook_leaves_the_status_alone(shell: str) -> None:
    assert told(shell, "@; (exit 7); _netsandbox_prompt; echo $?") == "7\n"


@pytest.mark.parametrize(
    ("shell", "hooks"),
    [("bash", 'echo "${PROMPT_COMMAND-none}"'), ("zsh", "echo ${precmd_functions-none}"), ("fish", "echo none")],
)
def test_outside_of_a_session_nothing_happens(shell: str, hooks: str) -> None:
    outside = {name: value for name, value in INSIDE.items() if name != "NETSANDBOX_SESSION"}
    left = "; functions -q __netsandbox_users_prompt; and echo changed" if shell == "fish" else ""
    assert told(shell, f"@; {hooks}{left}; true", outside) == "none\n"
