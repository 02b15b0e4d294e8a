"""`netsandbox explain PATH`: whether a session would read and write it, why, and the option that changes it."""

from __future__ import annotations

import json
import os
import stat

from netsandbox.backends.namespaces.path_access import ABSENT, HIDDEN, OWN, PRIVATE, PathAccess, path_access
from netsandbox.cli.terminal import print_text
from netsandbox.errors import UsageError
from netsandbox.paths import home, short, working_folder
from netsandbox.policy.file_denials import Advice, is_secret, not_advised, removal, shell_path
from netsandbox.policy.file_rules import CHANGE, MAKE, READ, is_within, path_rule
from netsandbox.runtime.protection import own_paths
from netsandbox.session.launch import inherited
from netsandbox.settings import RunSettings
from netsandbox.system import IS_MACOS
from netsandbox.text import single_line

SEEN = "a session sees it"
PLACE_OF_SECRETS = "it is a place of secrets; whatever runs in the session can then read it"
# Of a path that is not shown, the other half of the answer.
WRITES = {
    PRIVATE: "what a session writes there stays in its private home; `netsandbox home` lists it",
    OWN: "what a session writes there is gone after it",
    ABSENT: "a session cannot make it either",
    HIDDEN: "a session cannot change it either",
}
MISSING = "note: there is no such file now;"
BELONGS = "no option does, because it belongs to netsandbox"
DISK = "no option should, because a program that reads a disk reads every file on it"
TOO_MUCH = "name the folders in it, or use --files "


def is_path(word: str) -> bool:
    """No host begins like that, nor with the name of a folder here and a slash."""
    folder, slash, _ = word.partition("/")
    return word.startswith(("/", "~", ".")) or bool(slash and os.path.isdir(folder))


def is_file(word: str) -> bool:
    """Whether a file or folder here has this name, which a host may have too. A Mac explains hosts alone."""
    return not IS_MACOS and os.path.lexists(word)


def answer(word: str, settings: RunSettings, *, as_json: bool) -> int:
    """Print it; the exit status: 0 if a session may read the path, 1 if not."""
    if IS_MACOS:
        raise UsageError("explain takes paths on Linux only; `netsandbox run --dry-run` prints the rules of a Mac")
    here = working_folder()
    path = path_rule(word, "explain", here or "/", home).path
    access = path_access(settings.files, inherited(settings), here, path)
    real = os.path.realpath(path)
    print_text(json.dumps(_json(path, real, access), indent=2) if as_json else "\n".join(lines(path, real, access)))
    return 0 if access.reads else 1


def _change(real: str, operation: str, access: PathAccess) -> str | None:
    """The option to add; None if it is allowed."""
    own = os.path.realpath(home())
    if access.reads if operation == READ else access.writes:
        return None
    if access.rule is not None:
        return removal(access.rule)
    if is_within(own, real):
        return TOO_MUCH + ("readable" if operation == READ else "open")
    if is_within(real, "/dev") and access.why == ABSENT:
        return _device(real)
    advice = Advice(own, str, own_paths)
    if access.why == OWN and not os.path.lexists(real):
        return "--share-tmp"
    does = MAKE if operation == CHANGE and not os.path.lexists(real) else operation
    option = advice.option(real, does)
    if option is None:
        return BELONGS if advice.is_own(real, operation) else not_advised(real, own, operation)
    return f"{option[0]} {shell_path(real if os.path.isdir(real) else option[1], own)}"


def _device(real: str) -> str | None:
    try:
        mode = os.stat(real).st_mode
    except OSError:
        return None
    if stat.S_ISBLK(mode):
        return DISK
    return f"--allow-device {shell_path(real, os.path.realpath(home()))}" if stat.S_ISCHR(mode) else None


def lines(path: str, real: str, access: PathAccess) -> list[str]:
    """For people."""
    found = [short(path) if path == real else f"{short(path)}, which is {short(real)}"]
    for title, operation, allowed in (("read", READ, access.reads), ("write", CHANGE, access.writes)):
        why = SEEN if operation == READ else WRITES.get(access.why, access.why)
        why = access.why if operation == READ and not allowed else why
        found.append(f"  {title:<12} {'allowed' if allowed else 'denied':<8} {why}")
        change = _change(real, operation, access)
        if change is not None:
            found.append(f"  {'':<12} {'':<8} to allow it: {change}")
    if not access.reads and is_secret(real, os.path.realpath(home())):
        found.append(f"  note: {PLACE_OF_SECRETS}")
    if not os.path.lexists(real):
        found.append(f"  {MISSING} {_when_it_appears(access)}")
    elif access.reads and not os.access(real, os.R_OK):
        found.append("  note: you may not read it yourself, and a session has no other rights")
    return [single_line(line) for line in found]


def _when_it_appears(access: PathAccess) -> str:
    if not access.reads:
        why = "it has a folder of its own there" if access.why == OWN else "a rule holds for what exists at the start"
        return f"if it appears, a session still does not see it: {why}"
    return f"a session sees it as soon as it appears{', and may make it' if access.writes else ''}"


def _json(path: str, real: str, access: PathAccess) -> dict[str, object]:
    return {
        "v": 1,
        "path": path,
        "real": real,
        "because": access.why,
        "read": {"allowed": access.reads, "change": _change(real, READ, access)},
        "write": {"allowed": access.writes, "change": _change(real, CHANGE, access)},
    }
