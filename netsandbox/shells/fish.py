"""The completion script for fish (pure). fish quotes the words that it inserts; still, only plain words are used."""

from __future__ import annotations

from netsandbox.runtime.option_parser import FILES, FLAG, LOGS, VARIABLES
from netsandbox.shells.interactive import fish_quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from netsandbox.runtime.option_parser import Option, Words
    from netsandbox.shells.grammar import Command

_HEAD = r"""# What fish completes after the word netsandbox; made by `netsandbox completion fish`.
function __netsandbox_look_up
    command netsandbox completion --words $argv[1] 2>/dev/null | string match -r '^[a-zA-Z0-9._+][a-zA-Z0-9._+-]*$'
end

function __netsandbox_is_bare
    test (count (commandline -opc)) -eq 1
end

# The command is the first argument, and no `--` has come yet.
function __netsandbox_is
    set -l tokens (commandline -opc)
    test (count $tokens) -gt 1; and test "$tokens[2]" = $argv[1]; and not contains -- -- $tokens
end

# The command is one of the arguments, and another one follows after `--`.
function __netsandbox_runs
    set -l tokens (commandline -opc)
    test (count $tokens) -gt 2; and contains -- "$tokens[2]" $argv; and contains -- -- $tokens[3..-1]
end

function __netsandbox_another
    set -l tokens (commandline -opc)
    set -e tokens[1..(contains -i -- -- $tokens)]
    set -l before (string escape -- $tokens)
    complete -C (string join ' ' -- $before (commandline -ct))
end

complete -c netsandbox -f
complete -c netsandbox -n __netsandbox_is_bare -s h -l help -d 'list the commands'
complete -c netsandbox -n __netsandbox_is_bare -s V -l version -d 'print the version'
"""


def script(commands: Sequence[Command]) -> str:
    lines = [line for command in commands for line in _command(command)]
    running = " ".join(command.name for command in commands if command.runs_command)
    lines.append(f"complete -c netsandbox -n '__netsandbox_runs {running}' -a '(__netsandbox_another)'")
    return _HEAD + "\n".join(lines) + "\n"


def _command(command: Command) -> Iterator[str]:
    begin, here = "complete -c netsandbox", f"__netsandbox_is {command.name}"
    yield f"{begin} -n __netsandbox_is_bare -a {command.name} -d {fish_quoted(command.about)}"
    for option in command.options:
        yield f"{begin} -n '{here}' {_option(option)}"
    if command.words:
        yield f"{begin} -n '{here}' {_offered(command.words)}"
    if command.subcommands:
        verbs = " ".join(command.subcommands)
        yield f"{begin} -n '{here}; and not __fish_seen_subcommand_from {verbs}' -a {fish_quoted(verbs)}"
    for subcommand, words in command.subcommands.items():
        if words:
            yield f"{begin} -n '{here}; and __fish_seen_subcommand_from {subcommand}' {_offered(words)}"


def _option(option: Option) -> str:
    short = f"-s {option.letter} " if option.letter else ""
    takes = ""
    if option.kind != FLAG:
        takes = " -r" if option.words == FILES else " -x"
        takes += f" {_offered(option.words)}" if option.words else ""
    return f"{short}-l {option.name}{takes} -d {fish_quoted(option.help)}"


def _offered(words: Words) -> str:
    if words == FILES:
        return "-F"
    if words == VARIABLES:
        return "-a '(set -nx)'"
    if isinstance(words, str):
        files = "-F " if words == LOGS else ""  # a log has a path too
        return f"{files}-a '(__netsandbox_look_up {words})'"
    return f"-a {fish_quoted(' '.join(words))}"


def aliases(known: Mapping[str, str]) -> str:
    return "\n" + "".join(f"alias {name} {fish_quoted(meaning)}\n" for name, meaning in known.items())
