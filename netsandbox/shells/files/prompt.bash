# Shows the mode of the sandbox in the prompt of bash; outside of a session of netsandbox it does nothing.
case ${NETSANDBOX_SESSION:+${SANDBOX_MODE-}} in # only words that are known: a prompt is expanded like a command
    offline) _netsandbox_colour=31 ;;
    localhost) _netsandbox_colour=33 ;;
    filtered) _netsandbox_colour=34 ;;
    online) _netsandbox_colour=32 ;;
    *) _netsandbox_colour= ;;
esac

if [ -n "$_netsandbox_colour" ]; then
    _netsandbox_shown="[sandbox:$SANDBOX_MODE] "
    if [ -z "${NO_COLOR-}" ] && [ "${TERM-dumb}" != dumb ]; then
        _netsandbox_shown="\[\e[${_netsandbox_colour}m\][sandbox:$SANDBOX_MODE]\[\e[0m\] "
    fi

    # Last in PROMPT_COMMAND, since many a prompt is made anew there.
    _netsandbox_prompt() {
        local status=$?
        case ${PS1-} in
            *"$_netsandbox_shown"*) ;;
            *) PS1=$_netsandbox_shown${PS1-} ;;
        esac
        return "$status"
    }

    case "${PROMPT_COMMAND[*]-}" in
        *_netsandbox_prompt*) ;;
        *)
            if [[ $(declare -p PROMPT_COMMAND 2>/dev/null) == "declare -a"* ]] &&
                ((BASH_VERSINFO[0] > 5 || (BASH_VERSINFO[0] == 5 && BASH_VERSINFO[1] > 0))); then
                PROMPT_COMMAND+=(_netsandbox_prompt)
            else
                PROMPT_COMMAND=${PROMPT_COMMAND:+$PROMPT_COMMAND$'\n'}_netsandbox_prompt
            fi
            ;;
    esac
fi
unset _netsandbox_colour
