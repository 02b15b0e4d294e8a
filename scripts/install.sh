#!/bin/sh
# Installs netsandbox for one account, without root: an environment in ~/.local/share/netsandbox-venv, and links in
# ~/.local/bin and ~/.local/share/man. Run again, it upgrades. `install.sh --help` shows the rest.
#
# The environment is not in ~/.local/share/netsandbox, which no session sees.
set -eu

say() { printf 'netsandbox: %s\n' "$*" >&2; }
fail() { say "$@"; exit 1; }

usage() {
    cat <<'END'
usage: install.sh [SOURCE]      install or upgrade; SOURCE: a wheel, a folder with the sources, or a requirement;
                                by default the newest release
       install.sh --uninstall   remove everything but the logs

PYTHON names the interpreter. The settings of pip (an index, a proxy) apply.
END
}

# sudo keeps HOME on some systems: root would leave files there that their owner cannot remove.
check_home() {
    case ${HOME:-} in /*) ;; *) fail 'HOME is not set; set it to your home folder' ;; esac
    [ -d "$HOME" ] || fail "$HOME does not exist; make it, or set HOME to your home folder"
    # shellcheck disable=SC2012 # the first columns of one folder, whatever its name is
    owner=$(ls -ldn "$HOME" | awk '{ print $3; exit }')
    [ "$owner" = "$(id -u)" ] || fail "$HOME belongs to another account; run this without sudo"
}

advise() {
    if command -v apt-get >/dev/null 2>&1; then echo 'sudo apt-get install python3 python3-venv'
    elif command -v dnf >/dev/null 2>&1; then echo 'sudo dnf install python3.12'
    elif command -v apk >/dev/null 2>&1; then echo 'apk add python3'
    elif command -v pacman >/dev/null 2>&1; then echo 'sudo pacman -S python'
    elif command -v zypper >/dev/null 2>&1; then echo 'sudo zypper install python312'
    elif command -v brew >/dev/null 2>&1; then echo 'brew install python'
    else echo 'install the package of your system'; fi
}

# Each candidate is tried, not only looked up: a version manager's shim may exist and fail.
find_python() {
    for name in "${PYTHON:-}" python3 python3.13 python3.12 python3.11 python3.14; do
        [ -n "$name" ] || continue
        if "$name" -I -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' </dev/null >/dev/null 2>&1; then
            printf '%s\n' "$name"
            return
        fi
    done
    fail "Python 3.11 or newer with its venv module is needed and was not found: $(advise); or set PYTHON to one"
}

# A file of another installer (pipx, uv) is not replaced.
check_place() {
    if [ -e "$1" ] || [ -L "$1" ]; then
        case $(readlink "$1" || true) in
            "$venv"/*) ;;
            *) fail "$1 exists and was not made by this script; remove it first (pipx uninstall, uv tool uninstall)" ;;
        esac
    fi
}

pip() {
    # An account's settings for installs elsewhere must not lead away from the environment.
    (
        unset PIP_TARGET PIP_PREFIX PIP_ROOT
        PIP_USER=0 "$venv/bin/python" -I -m pip --disable-pip-version-check --no-input install --quiet --upgrade "$@"
    )
}

# What is left of an installation that failed would look like one.
abandon() {
    [ "$had" = yes ] || rm -rf "$venv"
    fail "$@"
}

install() {
    source=${1:-netsandbox}
    # without an argument a folder of that name here, in somebody's project, is not meant
    [ $# = 0 ] || [ ! -e "$source" ] || source=$(cd "$(dirname "$source")" && printf '%s/%s' "$(pwd)" "$(basename "$source")")
    check_place "$link"
    check_place "$page"
    python=$(find_python)
    had=no
    if [ -x "$venv/bin/netsandbox" ] && "$venv/bin/python" -I -c 'import pip' >/dev/null 2>&1; then
        had=yes
    else # new, or its interpreter is gone
        "$python" -I -m venv --clear "$venv" || abandon "the environment $venv could not be made; see above"
    fi
    pip "$source" || abandon "$source could not be installed in $venv; see above"
    # pip takes a file of the version that it has for the same file
    if [ "$had" = yes ] && [ $# != 0 ] && [ -e "$source" ]; then
        pip --force-reinstall --no-deps "$source" || fail "$source could not be installed in $venv; see above"
    fi
    version=$("$venv/bin/netsandbox" --version) || abandon "$venv/bin/netsandbox does not start; see above"
    mkdir -p "$(dirname "$link")" "$(dirname "$page")"
    ln -sf "$venv/bin/netsandbox" "$link"
    ln -sf "$venv/share/man/man1/netsandbox.1" "$page"
    say "version ${version#netsandbox } is installed: $link"
    command=netsandbox
    case :$PATH: in
        *:"${link%/*}":*) ;;
        *) say "${link%/*} is not on your PATH; add to ~/.profile: PATH=\$HOME/.local/bin:\$PATH" && command=$link ;;
    esac
    say "next: \`$command doctor\` checks this machine, \`$command run -- CMD\` runs a command"
}

uninstall() {
    had=yes
    if [ ! -d "$venv" ]; then
        had=no
        say "nothing is installed in $venv"
    elif kept=$("$venv/bin/netsandbox" uninstall --yes); then
        printf '%s\n' "$kept" | sed '/^Now remove the package/d'
    elif "$venv/bin/netsandbox" --version >/dev/null 2>&1; then
        fail 'nothing was removed; see above'
    else
        say "$venv does not start any more, so only the program is removed; ~/.local/state/netsandbox is kept"
    fi
    for path in "$link" "$page"; do
        case $(readlink "$path" 2>/dev/null || true) in "$venv"/*) rm -f "$path" ;; esac
    done
    rm -rf "$venv"
    [ "$had" = no ] || say 'netsandbox is removed'
}

check_home
data=$HOME/.local/share
venv=$data/netsandbox-venv
link=$HOME/.local/bin/netsandbox
page=$data/man/man1/netsandbox.1
case ${1:-} in
    -h | --help) usage ;;
    --uninstall) uninstall ;;
    -*) fail "$1 is no option; install.sh [SOURCE], or install.sh --uninstall" ;;
    *) install "$@" ;;
esac
