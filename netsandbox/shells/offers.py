"""What can stand at the cursor of a netsandbox command line, for every shell. Pure.

The scripts of the shells (`files/complete.*`) pass the words of the line and show the answer. Its first line says what
else can stand there: paths, or a command of its own. Each further line is a word and what it is.
"""

from __future__ import annotations

from netsandbox.frozen import frozen
from netsandbox.runtime.option_parser import FILES, FLAG, LOGS, OPTIONAL, PROFILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from netsandbox.runtime.option_parser import Words
    from netsandbox.shells.grammar import Command

    Find = Callable[[str], Mapping[str, str]]

PATHS, ANOTHER, NOTHING_ELSE = ":files", ":command", ":"
GENERAL = {"--help": "list the commands", "--version": "print the version"}


@frozen
class Offer:
    """`words`: each with what it is. `also`: PATHS, ANOTHER or NOTHING_ELSE."""

    words: tuple[tuple[str, str], ...] = ()
    also: str = NOTHING_ELSE

    def lines(self) -> list[str]:
        return [self.also, *(f"{word}\t{about}" for word, about in self.words)]


def first_word(current: str, about: Mapping[str, str]) -> Offer:
    """The commands, or what can stand in their place."""
    known = GENERAL if current.startswith("-") else about
    return Offer(tuple((name, text) for name, text in known.items() if name.startswith(current)))


def later_word(command: Command, words: Sequence[str], find: Find) -> Offer:
    """*words* follow the name of *command*; the last one is being typed. *find* looks up the words of a kind."""
    *before, current = words
    others: list[str] = []
    value: Words | None = None  # what the value of the option before can be
    for last, word in zip(("", *before), before, strict=False):
        if value is not None:
            value = value if word == "=" else None  # bash makes a word of it
        elif word == "--":
            return Offer(also=ANOTHER if command.runs_command else NOTHING_ELSE)
        elif word.startswith("-"):
            value = _value(command, word, OPTIONAL)
        elif word == "=":
            value = _value(command, last)
        else:
            others.append(word)
    if current == "=" and before and value is None:
        value = _value(command, before[-1])
    if value is not None:
        return _fitting(value, "" if current == "=" else current, find)
    if others and command.words == PROFILES and others[0] not in find(PROFILES):
        return Offer(also=PATHS)  # a command without `--`: its arguments, which no option of ours is
    if current.startswith("-"):
        return _option(command, current, find)
    if not command.subcommands:
        return _fitting(command.words, current, find)
    return _fitting(command.subcommands.get(others[0], ()) if others else tuple(command.subcommands), current, find)


def _option(command: Command, current: str, find: Find) -> Offer:
    name, equals, value = current.partition("=")
    if equals:
        return _fitting(_value(command, name) or (), value, find, f"{name}=")
    options = ((f"--{option.name}", option.help) for option in command.options)
    return Offer(tuple((name, about) for name, about in options if name.startswith(current)))


def _value(command: Command, word: str, *valueless: str) -> Words | None:
    """What the value of an option can be; None if it takes none, as those of the kinds *valueless*."""
    for option in command.options:
        if option.kind not in (FLAG, *valueless) and word in (f"--{option.name}", f"-{option.letter}"):
            return option.words
    return None


def _fitting(words: Words, current: str, find: Find, before: str = "") -> Offer:
    if words == FILES:
        return Offer(also=PATHS)
    found = find(words) if isinstance(words, str) else dict.fromkeys(words, "")
    fitting = tuple((before + word, about) for word, about in found.items() if word.startswith(current))
    return Offer(fitting, PATHS if words == LOGS else NOTHING_ELSE)  # a log has a path too
