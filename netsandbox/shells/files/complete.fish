# What fish completes after the word netsandbox; printed by `netsandbox completion fish`.
function __netsandbox_offers
    set -l tokens (commandline -opc)
    set -l lines (command netsandbox completion --complete $tokens[2..-1] (commandline -ct) 2>/dev/null)
    switch "$lines[1]"
        case :command
            set -e tokens[1..(contains -i -- -- $tokens)]
            complete -C (string join ' ' -- (string escape -- $tokens) (commandline -ct))
        case :files
            __fish_complete_path (commandline -ct)
    end
    string match -r '^[a-zA-Z0-9._+=-]+\t.*$' -- $lines[2..-1]
end

# fish also offers what it reads in manual pages (`fish_update_completions`). It does so at the first use and adds that to
# ours, so a first use comes before.
complete -C 'netsandbox ' >/dev/null
complete -c netsandbox -e
complete -c netsandbox -f -a '(__netsandbox_offers)'
