# Shows the mode of the sandbox in the prompt of fish; outside of a session of netsandbox it does nothing.
if set -q NETSANDBOX_SESSION; and not functions -q __netsandbox_users_prompt
    set -g __netsandbox_shown
    switch "$SANDBOX_MODE"
        case offline
            set __netsandbox_shown red
        case localhost
            set __netsandbox_shown yellow
        case filtered
            set __netsandbox_shown blue
        case online
            set __netsandbox_shown green
    end
    if test -n "$__netsandbox_shown"; and functions -q fish_prompt
        if test -n "$NO_COLOR"; or test "$TERM" = dumb
            set __netsandbox_shown "[sandbox:$SANDBOX_MODE] "
        else
            set __netsandbox_shown (set_color $__netsandbox_shown)"[sandbox:$SANDBOX_MODE]"(set_color normal)" "
        end
        functions -c fish_prompt __netsandbox_users_prompt
        # The user's prompt comes first in time, since it may show the status of the last command.
        function fish_prompt
            set -l users (__netsandbox_users_prompt | string collect)
            echo -n -- $__netsandbox_shown
            echo -n -- $users
        end
    end
end
