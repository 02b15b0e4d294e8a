"""The completion script for bash (pure). It also runs in bash 3.2, which Macs have.

Words that are looked up are untrusted: they are read line by line, never expanded (as `compgen -W` would), and only
plain words are used, because bash puts them on the command line unquoted.
"""

from __future__ import annotations

from netsandbox.runtime.option_parser import FLAG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from netsandbox.runtime.option_parser import Words
    from netsandbox.shells.grammar import Command

_BEFORE = r"""
# Sets `kind` to what the value of an option is; fails where it takes none.
_netsandbox_value_kind() {
    case "$1 $2" in
"""
_BETWEEN = r"""        *) return 1 ;;
    esac
}

# Sets `kind` to what the next word is, after the words that are there.
_netsandbox_word_kind() {
    local command=$1
    shift
    case $command in
"""
_OPTIONS = r"""        *) kind='=' ;;
    esac
}

_netsandbox_options() {
    case $1 in
"""
_AFTER = r"""    esac
}

_netsandbox_offer() {
    local word
    for word; do
        if [[ $word == "$cur"* ]]; then
            COMPREPLY+=("$word")
        fi
    done
}

_netsandbox_read() {
    local word
    while IFS= read -r word; do
        case $word in
            '' | -* | *[!a-zA-Z0-9._+-]*) ;;
            "$cur"*) COMPREPLY+=("$word") ;;
        esac
    done
}

_netsandbox_no_files() {
    compopt +o default +o bashdefault 2>/dev/null
}

_netsandbox_complete() {
    case $1 in
        files) return ;;
        variables) _netsandbox_read < <(compgen -e -- "$cur") ;;
        =*) _netsandbox_offer ${1#=} ;;
        *) _netsandbox_read < <(command netsandbox completion --words "$1" 2>/dev/null) ;;
    esac
    [[ $1 == logs ]] || _netsandbox_no_files # a log has a path too
}

# Another command begins at the word with this number.
_netsandbox_another() {
    if declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif ((COMP_CWORD == $1)) && [[ $cur != */* ]]; then
        _netsandbox_read < <(compgen -c -- "$cur")
        _netsandbox_no_files
    fi
}

_netsandbox() {
    local IFS=$' \t\n' cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} at=2 word kind
    local words=()
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _netsandbox_complete "=@COMMANDS@ --help --version"
        return
    fi
    while ((at < COMP_CWORD)); do
        word=${COMP_WORDS[at]}
        if [[ $word == -- ]]; then
            case $command in
                @RUNNING@) _netsandbox_another $((at + 1)) ;;
            esac
            return
        elif [[ $word != -* ]]; then
            words+=("$word")
        elif _netsandbox_value_kind "$command" "$word"; then
            ((++at))
            if ((at < COMP_CWORD)) && [[ ${COMP_WORDS[at]} == = ]]; then
                ((++at))
            fi
            if ((at >= COMP_CWORD)); then
                [[ $cur != = ]] || cur=
                _netsandbox_complete "$kind"
                return
            fi
        fi
        ((++at))
    done
    if [[ $cur == -* ]]; then
        _netsandbox_complete "=$(_netsandbox_options "$command")"
    else
        _netsandbox_word_kind "$command" ${words[@]+"${words[@]}"}
        _netsandbox_complete "$kind"
    fi
}

complete -o bashdefault -o default -F _netsandbox netsandbox
"""
_ALIASES = r"""
_netsandbox_alias() {
    local before=${#COMP_LINE}
    COMP_LINE="netsandbox run${COMP_LINE#*"${COMP_WORDS[0]}"}"
    ((COMP_POINT += ${#COMP_LINE} - before))
    COMP_WORDS=(netsandbox run "${COMP_WORDS[@]:1}")
    ((++COMP_CWORD))
    _netsandbox
}
"""


def script(commands: Sequence[Command]) -> str:
    values: dict[str, list[str]] = {}
    for command in commands:
        for option in command.options:
            if option.kind != FLAG:
                spelled = [f"--{option.name}", *([f"-{option.letter}"] if option.letter else [])]
                values.setdefault(_kind(option.words), []).extend(f"'{command.name} {name}'" for name in spelled)
    options = (
        f"        {command.name}) echo '{' '.join(f'--{option.name}' for option in command.options)}' ;;"
        for command in commands
    )
    tail = _AFTER.replace("@COMMANDS@", " ".join(command.name for command in commands))
    running = " | ".join(command.name for command in commands if command.runs_command)
    return "".join(
        (
            "# What bash completes after the word netsandbox; made by `netsandbox completion bash`.",
            _BEFORE,
            "".join(f"        {' | '.join(names)}) kind='{kind}' ;;\n" for kind, names in values.items()),
            _BETWEEN,
            "".join(_words(command) for command in commands if command.words or command.subcommands),
            _OPTIONS,
            "\n".join(options) + "\n",
            tail.replace("@RUNNING@", running),
        )
    )


def _kind(words: Words) -> str:
    """The name of a kind of word, or fixed words after an equals sign."""
    return words if isinstance(words, str) else "=" + " ".join(words)


def _words(command: Command) -> str:
    if not command.subcommands:
        return f"        {command.name}) kind='{_kind(command.words)}' ;;\n"
    after: dict[str, list[str]] = {}
    for subcommand, words in command.subcommands.items():
        after.setdefault(_kind(words), []).append(subcommand)
    inner = "".join(f"                {' | '.join(verbs)}) kind='{kind}' ;;\n" for kind, verbs in after.items())
    return (
        f"        {command.name})\n            case ${{1-}} in\n"
        f"                '') kind='={' '.join(command.subcommands)}' ;;\n{inner}                *) kind='=' ;;\n"
        "            esac\n            ;;\n"
    )


def aliases(known: Mapping[str, str]) -> str:
    lines = (f"alias {name}='{meaning}'\n" for name, meaning in known.items())
    return f"{_ALIASES}complete -o bashdefault -o default -F _netsandbox_alias {_joined(known)}\n{''.join(lines)}"


def _joined(names: Iterable[str]) -> str:
    return " ".join(names)
