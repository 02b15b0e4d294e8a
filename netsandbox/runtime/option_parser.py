"""Command-line options, parsed by a table (pure). argparse costs 8 ms and the path to exec has 10 in all.

Strict: an unknown option, a missing value, a value where none is taken or two different values of an option that takes
one is an error, and nothing is run. Long options take `--name value` or `--name=value`; everything after `--` is the
command. Where there is no `--`, the first word may start the command.
"""

from __future__ import annotations

from netsandbox.errors import UsageError
from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Words = tuple[str, ...] | str

FLAG, VALUE, LIST = "flag", "value", "list"
OPTIONAL = "optional"  # a value only as `--name=value`; without it the value is empty
RUNNING = ("netsandbox run", "netsandbox learn")  # they take a command after `--`
# Kinds of words that a shell can complete. Beside its OPTIONS a command has WORDS: what its words are, or, where the
# first one is a verb, what follows each verb. Such words are a tuple of those that are known, or one of these kinds.
FILES, VARIABLES, SWITCHES = "files", "variables", "switches"
PROFILES, SESSIONS, LOGS, DOMAINS = "profiles", "sessions", "logs", "domains"  # looked up at the time
PENDING, OVERLAYS = "pending", "overlays"  # and so are questions that wait, and kept changes


@frozen
class Option:
    """One option: its long name without dashes, what it takes, its short letter and its line in the help; and what
    its value can be, for shells that complete it; a FILE or PATH says so already."""

    name: str
    kind: str
    letter: str
    value: str
    help: str
    words: Words = ()

    @property
    def taken(self) -> str:
        """What stands behind the name in a help."""
        if self.kind == OPTIONAL:
            return f"[={self.value}]"
        return f" {self.value}" if self.value else ""


class Parsed:
    """What was given: `flags` by name, `values` by name, `lists` by name in order; `places` are those of `words` among
    the arguments."""

    __slots__ = ("arguments", "command", "flags", "lists", "places", "values", "words")

    def __init__(self, arguments: Sequence[str] = ()) -> None:
        self.arguments = arguments
        self.places: list[int] = []
        self.flags: set[str] = set()
        self.values: dict[str, str] = {}
        self.lists: dict[str, list[str]] = {}
        self.words: list[str] = []
        self.command: list[str] | None = None  # what stood after `--`; None when there was no `--`

    def all(self, name: str) -> list[str]:
        return self.lists.get(name, [])


def parse(
    arguments: Sequence[str],
    options: Sequence[Option],
    command: str,
    starts: Callable[[Sequence[str]], bool] | None = None,
) -> Parsed:
    """*command* names the subcommand in messages, such as `netsandbox run`. *starts* gets the arguments from the first
    word on, and tells whether they are the user's command; it is not called where there is a `--`."""
    known = {f"--{option.name}": option for option in options}
    known.update({f"-{option.letter}": option for option in options if option.letter})
    parsed = Parsed(arguments)
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word == "--":
            parsed.command = list(arguments[at:])
            break
        if not word.startswith("-") or word == "-":
            if starts is not None and not parsed.words and "--" not in arguments[at:] and starts(arguments[at - 1 :]):
                parsed.command = list(arguments[at - 1 :])
                break
            parsed.words.append(word)
            parsed.places.append(at - 1)
            continue
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        option = known.get(name)
        if option is None:
            raise UsageError(f"unknown option {name!a}; {_advice(name, known, command, parsed)}")
        if option.kind == FLAG:
            if equals:
                raise UsageError(f"{name} takes no value; write {name}")
            parsed.flags.add(option.name)
            continue
        if not equals and option.kind != OPTIONAL:
            if at == len(arguments) or arguments[at] == "--":
                raise UsageError(f"{name} needs a value; write {name} {option.value}")
            value = arguments[at]
            at += 1
        if option.kind == LIST:
            parsed.lists.setdefault(option.name, []).append(value)
        elif parsed.values.setdefault(option.name, value) != value:
            raise UsageError(f"{name} was given twice, as {parsed.values[option.name]!a} and {value!a}; give it once")
    return parsed


def _advice(name: str, known: dict[str, Option], command: str, parsed: Parsed) -> str:
    """An option after a word may be that of a command whose `--` was forgotten."""
    from netsandbox.runtime.option_advice import VERY_NEAR, option_advice, with_dashes

    if command in RUNNING and parsed.words and "--" not in parsed.arguments:
        return option_advice(name, known, with_dashes(command, parsed.arguments, parsed.places[0]), VERY_NEAR)
    return option_advice(name, known, f"see `{command} --help`")
