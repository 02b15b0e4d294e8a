# What a zsh reads first that `netsandbox run` starts: the user's own file and, for an interactive shell, the indicator of
# the mode. All that it reads after this is the user's, since ZDOTDIR is what it was.
typeset -g _netsandbox_files=${ZDOTDIR:h}
if (( ${+NETSANDBOX_ZDOTDIR} )); then
    export ZDOTDIR=$NETSANDBOX_ZDOTDIR
    unset NETSANDBOX_ZDOTDIR
else
    unset ZDOTDIR
fi
if [[ -r ${ZDOTDIR:-$HOME}/.zshenv ]]; then
    source "${ZDOTDIR:-$HOME}/.zshenv"
fi
if [[ -o interactive ]]; then
    source "$_netsandbox_files/prompt.zsh"
fi
unset _netsandbox_files
