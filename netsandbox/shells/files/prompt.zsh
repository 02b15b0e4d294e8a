# Shows the mode of the sandbox in the prompt of zsh; outside of a session of netsandbox it does nothing.
typeset -g _netsandbox_colour=
case "${NETSANDBOX_SESSION:+${SANDBOX_MODE-}}" in # only words that are known: a prompt is expanded like a command
    (offline) _netsandbox_colour=red ;;
    (localhost) _netsandbox_colour=yellow ;;
    (filtered) _netsandbox_colour=blue ;;
    (online) _netsandbox_colour=green ;;
esac

if [[ -n $_netsandbox_colour ]]; then
    typeset -g _netsandbox_shown="[sandbox:$SANDBOX_MODE] "
    if [[ -z ${NO_COLOR-} && ${TERM-dumb} != dumb ]]; then
        _netsandbox_shown="%F{$_netsandbox_colour}[sandbox:$SANDBOX_MODE]%f "
    fi

    # Last of the hooks, since many a prompt is made anew in one. In the first round hooks of the user's files may still
    # come later: then the prompt is drawn again.
    _netsandbox_prompt() {
        local result=$?
        if [[ ${precmd_functions[-1]} != _netsandbox_prompt ]]; then
            precmd_functions=(${precmd_functions:#_netsandbox_prompt} _netsandbox_prompt)
            autoload -Uz add-zle-hook-widget && add-zle-hook-widget line-init _netsandbox_again
        fi
        [[ $PROMPT == *"$_netsandbox_shown"* ]] || PROMPT=$_netsandbox_shown$PROMPT
        return $result
    }

    _netsandbox_again() {
        add-zle-hook-widget -d line-init _netsandbox_again
        _netsandbox_prompt
        zle reset-prompt
    }

    typeset -ga precmd_functions
    if (( ! ${precmd_functions[(I)_netsandbox_prompt]} )); then
        precmd_functions+=(_netsandbox_prompt)
    fi
fi
unset _netsandbox_colour
