"""The shell of a session as it looks: the mode in the prompt, the user's own files in force, and what Tab completes."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from netsandbox.shells.interactive import interactive
from tests.rig.completing import needs
from tests.rig.localhost import eventually, status_of
from tests.rig.screen import Screen

pytestmark = pytest.mark.usefixtures("user_namespaces")

SHELLS = ("bash", "zsh", "fish")
MODES = {
    "offline": ((), 31),
    "localhost": (("--localhost",), 33),
    "filtered": (("--allow-domain", "example.com"), 34),
    "online": (("--online",), 32),
}
FILES = {
    "bash": (".bashrc", "PS1='mine$?> '; alias hello='echo rc-wor''ks'\n"),
    "zsh": (".zshrc", "PROMPT='mine%?> '; alias hello='echo rc-wor''ks$ZDOTDIR'\n"),
    "fish": (
        "config/fish/config.fish",
        "set fish_greeting\nfunction fish_prompt; echo -n \"mine$status> \"; end\nalias hello 'echo rc-wor''ks'\n",
    ),
}
# As frameworks do: the prompt is made anew each time.
RESTLESS = {
    "bash": "PROMPT_COMMAND='PS1=\"anew> \";'\n",
    "zsh": "anew() { PROMPT='anew> ' }\nautoload -Uz add-zsh-hook; add-zsh-hook precmd anew\n",
}
# tmux does not always tell how its program ended, so a shell around the command does.
TELLING = ("sh", "-c", '"$@"; echo "left with $?"; exec cat', "sh")
# The user's own files count where they are shown.
OPEN = ("netsandbox", "run", "--files", "open")
Start = Callable[..., Screen]


@pytest.fixture
def start(netsandbox: Any) -> Iterator[Start]:
    """Starts a command on a screen, in the home of the test, where the shell's own file is."""
    needs("tmux")
    home = netsandbox.home()
    screens = []

    def start(command: list[str], env: dict[str, str] | None = None) -> Screen:
        environment = {**home.environment(env), "PATH": f"{home.path}/bin:{home.identity.path}"}
        screens.append(Screen(command, home.path / "tmp", home.work, environment))
        return screens[-1]

    program = home.path / "bin" / "netsandbox"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(home.identity.python)} -m netsandbox "$@"\n')
    program.chmod(0o755)
    yield start
    for screen in screens:
        screen.close()


def give(home: Any, shell: str, text: str = "") -> Path:
    """The shell's own file, with TEXT at its end."""
    name, usual = FILES[shell]
    file: Path = home.path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(usual + text)
    return file


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shell", SHELLS)
def test_the_prompt_shows_the_mode_in_its_colour_and_the_users_file_counts(
    netsandbox: Any, start: Start, shell: str, mode: str
) -> None:
    options, colour = MODES[mode]
    give(netsandbox.home(), shell)
    screen = start([*TELLING, *OPEN, *options], {"SHELL": needs(shell)})
    screen.see(f"[sandbox:{mode}] mine0>")
    eventually(lambda: f"\x1b[{colour}m[sandbox:{mode}]\x1b[39m" in screen.painted())  # some draw it more than once
    screen.type("hello\n")
    screen.see("rc-works\n")
    screen.type("false\n")
    screen.see(f"[sandbox:{mode}] mine1>")
    screen.type("exit 3\n")
    screen.see("left with 3\n")


def test_a_shell_of_another_kind_ends_with_its_own_status(netsandbox: Any, start: Start) -> None:
    screen = start([*TELLING, "netsandbox", "run"], {"SHELL": needs("dash"), "PS1": "ready> "})
    screen.see("ready>")
    screen.type("exit 3\n")
    assert "process group" not in screen.see("left with 3\n")


def test_the_title_of_the_terminal_tells_the_mode_until_the_shell_ends(netsandbox: Any, start: Start) -> None:
    titled = ("sh", "-c", 'printf "\\033]2;mine\\007"; "$@"; echo "left with $?"; exec cat', "sh")
    screen = start([*titled, "netsandbox", "run"], {"SHELL": needs("bash")})
    screen.see("[sandbox:offline]")
    eventually(lambda: screen.title() == "[sandbox:offline]")
    screen.type("exit 3\n")
    screen.see("left with 3\n")
    assert screen.title() == "mine"


@pytest.mark.parametrize("shell", SHELLS)
def test_by_default_the_users_file_is_not_shown_and_the_mode_is(netsandbox: Any, start: Start, shell: str) -> None:
    """Start-up files often export keys."""
    give(netsandbox.home(), shell)
    screen = start([*TELLING, "netsandbox", "run"], {"SHELL": needs(shell)})
    screen.see("[sandbox:offline]")
    screen.type("hello; exit 3\n")
    shown = screen.see("left with 3\n")
    assert "mine" not in shown
    assert "rc-works" not in shown


@pytest.mark.parametrize("shell", SHELLS)
def test_an_option_shows_the_users_file(netsandbox: Any, start: Start, shell: str) -> None:
    file = give(netsandbox.home(), shell)
    screen = start(["netsandbox", "run", "--allow-read", str(file)], {"SHELL": needs(shell)})
    screen.see("[sandbox:offline] mine0>")
    screen.type("hello\n")
    screen.see("rc-works\n")


@pytest.mark.parametrize("shell", RESTLESS)
def test_a_prompt_that_is_made_anew_has_the_mode_each_time_and_once(netsandbox: Any, start: Start, shell: str) -> None:
    give(netsandbox.home(), shell, RESTLESS[shell])
    screen = start([*OPEN], {"SHELL": needs(shell)})
    screen.see("[sandbox:offline] anew>")
    screen.type(":\n:\n")
    eventually(lambda: screen.shown().count("[sandbox:offline] anew>") == 3)
    assert screen.shown().count("sandbox:") == 3


@pytest.mark.parametrize("shell", SHELLS)
def test_without_colours_for_those_who_want_none(netsandbox: Any, start: Start, shell: str) -> None:
    give(netsandbox.home(), shell)
    screen = start([*OPEN], {"SHELL": needs(shell), "NO_COLOR": "1"})
    screen.see("[sandbox:offline] mine0>")
    assert "m[sandbox:offline]" not in screen.painted()


@pytest.mark.parametrize("shell", SHELLS)
def test_the_configuration_turns_it_off(netsandbox: Any, start: Start, shell: str) -> None:
    home = netsandbox.home()
    give(home, shell)
    config = home.path / "config" / "netsandbox" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[sandbox]\nprompt_indicator = false\n")
    screen = start([*OPEN], {"SHELL": needs(shell)})
    assert "sandbox:" not in screen.see("mine0>")


def test_a_folder_of_zsh_is_the_users_again_and_his_environment_is_read(netsandbox: Any, start: Start) -> None:
    home = netsandbox.home()
    give(home, "zsh")
    folder = home.path / "dots"
    folder.mkdir()
    (folder / ".zshenv").write_text("export FROM=zshenv\n")
    (folder / ".zshrc").write_text("PROMPT='dots> '\n")
    screen = start([*OPEN], {"SHELL": needs("zsh"), "ZDOTDIR": str(folder)})
    screen.see("[sandbox:offline] dots>")
    screen.type('echo "$FROM:${ZDOTDIR:t}:${NETSANDBOX_ZDOTDIR-none}:${(t)ZDOTDIR}"\n')
    screen.see("\nzshenv:dots:none:scalar-export")


@pytest.mark.parametrize("shell", SHELLS)
def test_without_a_terminal_the_shell_is_started_as_it_is(netsandbox: Any, shell: str) -> None:
    run = netsandbox("run", input="echo read $ZDOTDIR\nexit 4\n", env={"SHELL": needs(shell), "ZDOTDIR": None})
    assert (run.returncode, run.stdout) == (4, "read\n")
    assert run.audit[0]["args"] == 0


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_nothing_is_written_into_the_home(netsandbox: Any, start: Start, shell: str) -> None:
    home = netsandbox.home()
    give(home, shell)
    (home.path / "state").mkdir(exist_ok=True)
    (home.path / ".local").mkdir()  # where netsandbox remembers its own folders
    before = {path.name for path in home.path.iterdir()}
    screen = start([*TELLING, *OPEN], {"SHELL": needs(shell), "HISTFILE": ""})
    screen.see("[sandbox:offline] mine0>")
    screen.type("exit 5\n")
    screen.see("left with 5\n")
    assert {path.name for path in home.path.iterdir()} - {"config"} == before - {"config"}


@pytest.mark.parametrize("mode", ["$(touch canary)", "`touch canary`", "%{$(touch canary)%}", "offline$(touch canary)"])
@pytest.mark.parametrize("shell", SHELLS)
def test_a_mode_that_is_none_is_neither_shown_nor_run(netsandbox: Any, start: Start, shell: str, mode: str) -> None:
    """A command can set the variable for a shell that it starts."""
    home = netsandbox.home()
    give(home, shell, "setopt prompt_subst\n" if shell == "zsh" else "")
    command, variables = interactive(needs(shell), {})
    screen = start(command, {**dict(variables), "NETSANDBOX_SESSION": "x", "SANDBOX_MODE": mode})
    screen.see("mine0>")
    screen.type("hello\n")
    assert "sandbox:" not in screen.see("rc-works")
    assert not (home.work / "canary").exists()


EVALUATED = {
    "bash": 'eval "$(netsandbox completion bash --prompt --aliases)"\n',
    "zsh": 'autoload -Uz compinit; compinit -u -D; eval "$(netsandbox completion zsh --prompt --aliases)"\n',
    "fish": "netsandbox completion fish --prompt --aliases | source\n",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_real_script_completes_options_profiles_and_sessions(netsandbox: Any, start: Start, shell: str) -> None:
    home = netsandbox.home()
    give(home, shell, EVALUATED[shell])
    running = netsandbox.spawn("run", "--name", "shop", "--", "sh", "-c", "echo up; exec sleep 100")
    running.read_until(b"up")
    status_of(netsandbox, "shop")  # from now on it can be asked
    screen = start([needs(shell)])
    assert "sandbox:" not in screen.see("mine0>")  # which is outside of any session
    for typed, completed in (
        ("netsandbox stop sh", "netsandbox stop shop"),
        ("netsandbox run --network-strategy iso", "netsandbox run --network-strategy isolate"),
        ("netsandbox run --no-proxy", "netsandbox run --no-proxy-env"),
        ("netsandbox run offl", "netsandbox run offline"),
        ("nsl nod", "nsl node"),
    ):
        screen.type(typed)
        screen.press("Tab")
        screen.see(completed)
        screen.press("C-u")
        screen.press("C-l")
