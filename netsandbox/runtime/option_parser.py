"""Command-line options, parsed by a table (pure). argparse costs 8 ms and the path to exec has 10 in all.

Strict: an unknown option, a missing value, a value where none is taken or two different values of an option that takes
one is an error, and nothing is run. Long options take `--name value` or `--name=value`; everything after `--` is the
command.
"""

from __future__ import annotations

from netsandbox.errors import UsageError
from netsandbox.frozen import frozen
from netsandbox.text import did_you_mean, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

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
    """What was given: `flags` by name, `values` by name, `lists` by name in order."""

    __slots__ = ("command", "flags", "lists", "values", "words")

    def __init__(self) -> None:
        self.flags: set[str] = set()
        self.values: dict[str, str] = {}
        self.lists: dict[str, list[str]] = {}
        self.words: list[str] = []
        self.command: list[str] | None = None  # what stood after `--`; None when there was no `--`

    def all(self, name: str) -> list[str]:
        return self.lists.get(name, [])


def parse(arguments: Sequence[str], options: Sequence[Option], command: str) -> Parsed:
    """*command* names the subcommand in messages, such as `netsandbox run`."""
    known = {f"--{option.name}": option for option in options}
    known.update({f"-{option.letter}": option for option in options if option.letter})
    parsed = Parsed()
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word == "--":
            parsed.command = list(arguments[at:])
            break
        if not word.startswith("-") or word == "-":
            parsed.words.append(word)
            continue
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        option = known.get(name)
        if option is None:
            forgot = parsed.words if command in RUNNING and "--" not in arguments[at:] else []
            raise UsageError(_unknown(name, known, command, [*forgot, *arguments[at - 1 :]] if forgot else []))
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


def _unknown(name: str, known: dict[str, Option], command: str, started: Sequence[str]) -> str:
    """*started* is a command whose `--` may have been forgotten."""
    if not started:
        return f"unknown option {name!a}; {did_you_mean(name, known, f'see `{command} --help`')}"
    near = did_you_mean(name, known, "")
    return f"unknown option {name!a}; {near + ' ' if near else ''}{after_dashes(command, started)}"


def after_dashes(command: str, started: Sequence[str]) -> str:
    """The advice to a user who wrote the command *started* without `--`."""
    begun = " ".join(quoted(word)[1:-1] for word in started[:4])
    more = " …" if len(started) > 4 or len(started) == 1 else ""
    return f"to run a command write `{command} [OPTIONS] -- {begun}{more}`"


def help_lines(options: Sequence[Option]) -> list[str]:
    """The options as the help shows them; those with a star can be given several times."""
    lines = []
    for option in options:
        short = f"-{option.letter}, " if option.letter else "    "
        name = f"{short}--{option.name}{option.taken}"
        star = " *" if option.kind == LIST else ""
        lines.append(f"  {name + star:<36}{option.help}")
    return lines
