# What bash completes after the word netsandbox; printed by `netsandbox completion bash`. It also runs in bash 3.2.
# Words are read line by line, never expanded (as `compgen -W` would), and only plain ones are used, because bash puts
# them on the command line unquoted.
_netsandbox_read() {
    local word
    while IFS=$'\t' read -r word _; do
        case $word in
            '' | *[!a-zA-Z0-9._+=-]*) ;;
            *) COMPREPLY+=("$word") ;;
        esac
    done
}

# Another command begins after the word `--`.
_netsandbox_another() {
    local at=2
    while [[ ${COMP_WORDS[at]} != -- ]]; do
        ((++at))
    done
    ((++at))
    if declare -F _command_offset >/dev/null; then
        _command_offset "$at"
    elif ((COMP_CWORD == at)) && [[ $cur != */* ]]; then
        _netsandbox_read < <(compgen -c -- "$cur")
        compopt +o default +o bashdefault 2>/dev/null
    fi
}

_netsandbox() {
    local IFS=$' \t\n' cur=${COMP_WORDS[COMP_CWORD]} also
    COMPREPLY=()
    {
        IFS= read -r also
        _netsandbox_read
    } < <(command netsandbox completion --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    case $also in
        :files) ;;
        :command) _netsandbox_another ;;
        *) compopt +o default +o bashdefault 2>/dev/null ;;
    esac
}

complete -o bashdefault -o default -F _netsandbox netsandbox

_netsandbox_alias() {
    local before=${#COMP_LINE}
    COMP_LINE="netsandbox run${COMP_LINE#*"${COMP_WORDS[0]}"}"
    ((COMP_POINT += ${#COMP_LINE} - before))
    COMP_WORDS=(netsandbox run "${COMP_WORDS[@]:1}")
    ((++COMP_CWORD))
    _netsandbox
}
