"""The whole command line as one value, gathered from the tables of the commands, for completions and the manual."""

from __future__ import annotations

from importlib import import_module

from netsandbox.backends.seatbelt.profile import switches
from netsandbox.cli.help import ABOUT
from netsandbox.cli.main import COMMANDS
from netsandbox.runtime.option_parser import FILES, SWITCHES, Option
from netsandbox.shells.grammar import Command

COMMAND = "-- CMD"  # in the usage of those that run one


def grammar() -> tuple[Command, ...]:
    return tuple(command(name) for name in COMMANDS)


def command(name: str) -> Command:
    module = import_module(f"netsandbox.cli.{name}")
    words = getattr(module, "WORDS", ())
    subcommands = words if isinstance(words, dict) else {}
    return Command(
        name,
        ABOUT[name],
        module.USAGE,
        tuple(_plain(option) for option in module.OPTIONS),
        () if subcommands else words,
        subcommands,
        COMMAND in module.USAGE,
    )


def _plain(option: Option) -> Option:
    """With the words of its value as a shell needs them."""
    words = option.words
    if words == SWITCHES:
        words = switches.WORDS
    elif not words and option.value.startswith(("FILE", "FOLDER", "PATH", "DIR")):
        words = FILES
    return Option(option.name, option.kind, option.letter, option.value, option.help, words)
