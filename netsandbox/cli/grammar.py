"""The whole command line as one value, gathered from the tables of the commands, for completions and the manual."""

from __future__ import annotations

from importlib import import_module

from netsandbox.backends.seatbelt.profile import switches
from netsandbox.cli.help import ABOUT
from netsandbox.cli.main import COMMANDS
from netsandbox.cli.options import FILES, SWITCHES, Option
from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from netsandbox.cli.options import Words

COMMAND = "-- CMD"  # in the usage of those that run one


@frozen
class Command:
    """`verbs`: what can follow each; empty where the words are all of one kind, `words`."""

    name: str
    about: str
    usage: str
    options: tuple[Option, ...]
    words: Words = ()
    verbs: Mapping[str, Words] = {}
    runs: bool = False  # whether another command follows `--`


def grammar() -> tuple[Command, ...]:
    return tuple(_command(name) for name in COMMANDS)


def _command(name: str) -> Command:
    module = import_module(f"netsandbox.cli.{name}")
    words = getattr(module, "WORDS", ())
    verbs = words if isinstance(words, dict) else {}
    return Command(
        name,
        ABOUT[name],
        module.USAGE,
        tuple(_plain(option) for option in module.OPTIONS),
        () if verbs else words,
        verbs,
        COMMAND in module.USAGE,
    )


def _plain(option: Option) -> Option:
    """With the words of its value as a shell needs them."""
    words = option.words
    if words == SWITCHES:
        words = switches.WORDS
    elif not words and option.value.startswith(("FILE", "FOLDER", "PATH")):
        words = FILES
    return Option(option.name, option.kind, option.letter, option.value, option.help, words)
