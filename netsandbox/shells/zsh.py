"""The completion script for zsh (pure): a file `_netsandbox` on its fpath, or read by .zshrc after `compinit`."""

from __future__ import annotations

from netsandbox.runtime.option_parser import FILES, FLAG, LIST, LOGS, VARIABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from netsandbox.runtime.option_parser import Option, Words
    from netsandbox.shells.grammar import Command

_HEAD = r"""#compdef netsandbox
# What zsh completes after the word netsandbox; made by `netsandbox completion zsh`.
# The kind comes last: `_arguments` puts options of compadd before it.
_netsandbox_look_up() {
    local -a found
    found=(${(f)"$(command netsandbox completion --words ${@[-1]} 2>/dev/null)"})
    found=(${${found:#*[^a-zA-Z0-9._+-]*}:#-*})
    compadd "${(@)@[1,-2]}" -a -- found
}

_netsandbox() {
    local curcontext=$curcontext context state state_descr
    local -a line known
    local -A opt_args
    if (( CURRENT == 2 )); then
        known=(
"""
_MIDDLE = r"""        )
        _describe command known
        _arguments '(- *)'{-h,--help}'[list the commands]' '(- *)'{-V,--version}'[print the version]'
        return
    fi
    local command=$words[2] end=${words[(i)--]}
    if (( end < CURRENT )); then
        if [[ $command == (@RUNNING@) ]]; then
            shift $end words
            (( CURRENT -= end ))
            _normal
        fi
        return
    fi
    shift words
    (( CURRENT-- ))
    case $command in
"""
_TAIL = r"""    esac
}

if [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then
    _netsandbox "$@"
elif (( ${+functions[compdef]} )); then
    compdef _netsandbox netsandbox
fi
"""
_ACTIONS = {
    FILES: "_files",
    VARIABLES: "_parameters -g '*export*'",
    LOGS: "_netsandbox_look_up logs || _files",  # a log has a path too
}


def script(commands: Sequence[Command]) -> str:
    listed = "".join(f"            {_quoted(f'{command.name}:{command.about}')}\n" for command in commands)
    running = "|".join(command.name for command in commands if command.runs_command)
    middle = _MIDDLE.replace("@RUNNING@", running)
    return f"{_HEAD}{listed}{middle}{''.join(map(_command, commands))}{_TAIL}"


def _command(command: Command) -> str:
    specs = [_option(option) for option in command.options]
    if command.words:
        specs.append(_quoted(f"*:word:{_action(command.words)}"))
    if command.subcommands:
        specs += [_quoted(f"1:verb:({' '.join(command.subcommands)})"), "'*: :->rest'"]
    lines = " \\\n".join(f"                {spec}" for spec in specs)
    return f"        ({command.name})\n            _arguments -s -C \\\n{lines}\n{_rest(command)}            ;;\n"


def _rest(command: Command) -> str:
    """The words after each subcommand."""
    cases = "".join(
        f"                ({name}) {_run(words)} ;;\n" for name, words in command.subcommands.items() if words
    )
    if not cases:
        return ""
    return f'            [[ $state == rest ]] && case "${{line[1]}}" in\n{cases}            esac\n'


def _option(option: Option) -> str:
    """One specification of `_arguments`: what excludes it, its names, its help and its value."""
    takes = "" if option.kind == FLAG else f":{option.value.replace(':', ' ')}:{_action(option.words)}"
    about = _quoted(f"[{_tame(option.help)}]{takes}")
    names = [f"--{option.name}" + ("" if option.kind == FLAG else "=")]
    if option.letter:
        names.insert(0, f"-{option.letter}" + ("" if option.kind == FLAG else "+"))
    spelled = f"{{{','.join(names)}}}" if len(names) > 1 else names[0]
    if option.kind == LIST:
        return f"\\*{spelled}{about}" if len(names) == 1 else f"'*'{spelled}{about}"
    return f"{_quoted('(' + ' '.join(name.rstrip('=+') for name in names) + ')')}{spelled}{about}"


def _action(words: Words) -> str:
    if not words:
        return " "
    if isinstance(words, tuple):
        return f"({' '.join(words)})"
    return _ACTIONS.get(words, f"_netsandbox_look_up {words}")


def _run(words: Words) -> str:
    return f"compadd -- {' '.join(words)}" if isinstance(words, tuple) else _action(words)


def _tame(text: str) -> str:
    """The text without the characters that are special to `_arguments`."""
    return "".join(f"\\{char}" if char in "\\[]:" else char for char in text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def aliases(known: Mapping[str, str]) -> str:
    return "\n" + "".join(f"alias {name}={_quoted(meaning)}\n" for name, meaning in known.items())
