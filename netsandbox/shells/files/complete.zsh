#compdef netsandbox
# What zsh completes after the word netsandbox; printed by `netsandbox completion zsh`: a file `_netsandbox` on its
# fpath, or read by .zshrc after `compinit`.
_netsandbox() {
    local end=${words[(i)--]} line word
    local -a lines found
    lines=(${(f)"$(command netsandbox completion --complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)"})
    if [[ $lines[1] == :command ]]; then
        shift $end words
        (( CURRENT -= end ))
        _normal
        return
    fi
    for line in "${(@)lines[2,-1]}"; do
        word=${line%%$'\t'*}
        [[ $word == *[^a-zA-Z0-9._+=-]* ]] || found+=("$word${${line#*$'\t'}:+:${line#*$'\t'}}")
    done
    (( $#found )) && _describe word found
    if [[ $lines[1] == :files ]]; then
        compset -P '--*='
        _files
    fi
}

if [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then
    _netsandbox "$@"
elif (( ${+functions[compdef]} )); then
    compdef _netsandbox netsandbox
fi
