"""`netsandbox uninstall`: removes everything that netsandbox keeps for this user, except the logs.

An installer removes the package, and can neither remove the rest nor say where the logs are. In the memory home stay
the time of the first session, the marks of folders that sessions could write, and the homes that were used: a later
installation must not trust what sessions left elsewhere.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys

from netsandbox_portmap.reservation import HOST_LOCKS

from netsandbox.audit.kept_head import HEADS
from netsandbox.audit.placed_log import PLACED
from netsandbox.audit.sweep import is_live
from netsandbox.backends.linux.kept_overlays import KeptOverlays
from netsandbox.backends.linux.private_folders import remove_tree
from netsandbox.cli.help import print_help
from netsandbox.cli.terminal import confirm, notice, print_text
from netsandbox.errors import HostError, NetsandboxError, UsageError
from netsandbox.paths import (
    FIRST_SESSION,
    LISTS,
    LOG_NAME,
    PACKAGE,
    PROFILES,
    WRITTEN,
    config_home,
    memory_home,
    short,
    state_home,
)
from netsandbox.runtime.imports import COMMANDS, LAUNCH, Bundle
from netsandbox.runtime.option_parser import FLAG, Option, parse
from netsandbox.runtime.protection import hidden_homes
from netsandbox.runtime.used_homes import HOMES
from netsandbox.session.sessions_client import survey
from netsandbox.system import IS_MACOS
from netsandbox.text import few, plural, shell_quoted

OPTIONS = (
    Option("yes", FLAG, "y", "", "do not ask"),
    Option("help", FLAG, "h", "", "this text"),
)
USAGE = """\
usage: netsandbox uninstall [--yes]

Remove the private homes, overlays, caches and trust of all your sessions, and print the command that removes the \
package. Logs stay, and so does configuration that you wrote; both places are printed."""
SESSIONS = "sessions"
LOGS = (SESSIONS, HEADS, PLACED)
MARKS = (FIRST_SESSION, WRITTEN, HOMES)
ENVIRONMENT = "netsandbox-venv"  # of scripts/install.sh


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox uninstall")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    if parsed.words or parsed.command:
        raise UsageError("uninstall takes no arguments; write `netsandbox uninstall`")
    if "NETSANDBOX_SESSION" in os.environ:
        raise HostError("this is a session of netsandbox, which sees nothing to remove; run uninstall outside of it")
    states = [path for path in hidden_homes() if path != memory_home() and os.path.isdir(path)]
    if running := _running(states):
        raise NetsandboxError(f"{plural(running, 'session')} running; end all with `netsandbox stop --all` first")
    if "yes" not in parsed.flags and not (sys.stdin.isatty() and confirm(_question())):
        notice("nothing was removed; add --yes, or answer y")
        return 1
    try:
        for state in states:
            _empty(os.path.realpath(state), LOGS if os.path.isdir(memory_home()) else (*LOGS, *MARKS))
            _remove(f"{os.path.realpath(state)}-signed")
        _empty(os.path.realpath(memory_home()), MARKS)
    except (OSError, RecursionError) as error:
        raise NetsandboxError(f"not all of it could be removed ({error}); remove it by hand") from None
    _remove_host_locks()
    _remove_bundles()
    _tell(states)
    return 0


def _running(states: list[str]) -> int:
    """How many sessions run: those that a command finds, or with other variables those that hold their log."""
    running, silent = survey()
    found = len(running) + len(silent)
    for folder in (os.path.join(state, SESSIONS) for state in states if state != state_home()):
        names = os.listdir(folder) if os.path.isdir(folder) else []
        found += sum(is_live(os.path.join(folder, name, LOG_NAME)) for name in names)
    return found


def _question() -> str:
    kept = [] if IS_MACOS else KeptOverlays(state_home()).names()
    lost = f" The changes in {few(kept)} were not applied and are lost." if kept else ""
    return f"Remove the private homes, overlays, caches and trust of all your sessions?{lost}"


def _empty(folder: str, kept: tuple[str, ...]) -> None:
    """Remove all but *kept* in *folder*, and the folder itself if nothing is left."""
    if os.path.isdir(folder):
        for name in os.listdir(folder):
            if name not in kept:
                _remove(os.path.join(folder, name))
        _forget(folder)


def _remove(path: str) -> None:
    """A session left there what it liked, so links are not followed."""
    if not IS_MACOS:
        remove_tree(path)
    elif os.path.isdir(path) and not os.path.islink(path):  # without private homes: only files of our own
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _forget(folder: str) -> None:
    """Remove *folder* if nothing is in it."""
    try:
        os.rmdir(folder)
    except OSError:
        pass


def _remove_host_locks() -> None:
    """The lock file of all users, if it is this user's and no session of anybody holds a part of it."""
    try:
        descriptor = os.open(HOST_LOCKS, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # each session has a shared lock (`ranges`)
            os.unlink(HOST_LOCKS)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def _remove_bundles() -> None:
    """No installer knows them. This process must not write them again at its end."""
    for bundle in (LAUNCH, COMMANDS):
        try:
            os.unlink(bundle)
        except OSError:
            pass
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, Bundle)]


def _tell(states: list[str]) -> None:
    config = config_home()
    for folder in (os.path.join(config, PROFILES), os.path.join(config, LISTS), config):
        _forget(folder)
    for state in filter(os.path.isdir, states):
        print_text(f"The logs are kept in {short(state)}.")
    if os.path.isdir(memory_home()):
        place = short(memory_home())
        print_text(f"The list of folders that sessions could write is kept in {place}, for a later installation.")
    if os.path.isdir(config):
        print_text(f"Your configuration is kept in {short(config)}.")
    if not IS_MACOS:
        from netsandbox.cli.doctor_fix import removal_command

        if command := removal_command():
            print_text(f"The AppArmor profile for the helper is kept. First remove it: {command}")
    print_text(f"Now remove the package: {removal(os.path.abspath(f'{PACKAGE}/../../../..'))}")


def removal(prefix: str) -> str:
    """The command that removes the package from the environment *prefix*. pipx and uv leave a file in theirs."""
    if os.path.exists(f"{prefix}/pipx_metadata.json"):
        return "pipx uninstall netsandbox"
    if os.path.exists(f"{prefix}/uv-receipt.toml"):
        return "uv tool uninstall netsandbox"
    if "/Cellar/netsandbox/" in prefix:
        return "brew uninstall netsandbox"
    if os.path.basename(prefix) == ENVIRONMENT:
        return f"rm -r {shell_quoted(prefix)} ~/.local/bin/netsandbox ~/.local/share/man/man1/netsandbox.1"
    return f"{shell_quoted(sys.executable)} -m pip uninstall netsandbox"
