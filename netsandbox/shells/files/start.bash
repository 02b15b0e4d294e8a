# What an interactive bash reads that `netsandbox run` starts: the user's own file, then the indicator of the mode.
if [ -r ~/.bashrc ]; then
    . ~/.bashrc
fi
. "${BASH_SOURCE[0]%/*}/prompt.bash"
