"""The state and configuration homes that netsandbox has used: no session may write any of them, in any mode (INV-8).

    <memory home>/homes    a letter, a real path and a zero byte for each

Variables choose the homes, so a session that runs without them must protect those that are used with them, and the
other way round. A home that was never used, or that was gone when a session began, is not protected: if it holds files
although sessions have run, one of them may have put them there, and nothing in it is read until the user decides.
"""

from __future__ import annotations

import fcntl
import os
from errno import EROFS

from netsandbox.errors import HostError, NetsandboxError
from netsandbox.paths import (
    config_home,
    default_homes,
    first_session,
    has_fixed_home,
    is_made,
    memory_home,
    named_profile_folder,
    state_home,
    unusable,
    user_can_change,
)
from netsandbox.runtime.private_file import content, replace

STATE, CONFIG = "S", "C"
MAX_HOMES = 128  # each is a mount; of more, the oldest are forgotten
HOMES = "homes"  # in the memory home
_MAX_SIZE = 1024 * 1024
_checked: set[tuple[str, str]] = set()


def used_homes(kind: str) -> tuple[str, ...]:
    """The known homes of *kind* that exist."""
    return tuple(path for each, path in _known() or () if each == kind and os.path.isdir(path))


def note_homes() -> None:
    """Note the present homes, which exist, before a command runs."""
    if has_fixed_home() or _to_note() is None:
        return
    try:
        memory = memory_home()
        if is_made(memory):
            lock = os.open(memory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)  # of two sessions that start at once, both are noted
                text = "".join(f"{kind}{path}\0" for kind, path in _to_note() or ())
                if text:
                    replace(os.path.join(memory, HOMES), os.fsencode(text))
            finally:
                os.close(lock)
    except (OSError, NetsandboxError) as error:
        if user_can_change(os.path.dirname(os.path.join(memory_home(), HOMES))):
            what = f"cannot note the homes in use in {memory_home()}"
            if not isinstance(error, OSError):
                raise
            if error.errno == EROFS:
                advice = "this may be a session already: run netsandbox outside of it"
                raise HostError(f"{what}: {error.strerror}; {advice}") from None
            raise unusable(what, error) from None


def made_known_state() -> None:
    """Make the state home if it is missing, outside of any session. Nobody has filled one that did not exist, so it is
    noted at once: later it would look like one that an earlier session left."""
    try:
        os.makedirs(state_home(), 0o700)
    except FileExistsError:
        return
    if _known() is not None:
        note_homes()


def _to_note() -> list[tuple[str, str]] | None:
    """All homes to remember; None if they are noted. Those that are gone are forgotten. The first time, those without
    variables are noted too: an earlier version may have used them."""
    known, default = _known(), _default_homes()
    configs = [path for path in (config_home(), named_profile_folder()) if path and _is_used(path)]
    present = ((STATE, os.path.realpath(state_home())), *((CONFIG, os.path.realpath(path)) for path in configs))
    last = (*(home for home in default if known is None or home in known), *present)
    others = [home for home in known or () if home not in last]
    wanted = [home for home in dict.fromkeys((*others, *last)) if os.path.isdir(home[1])][-MAX_HOMES:]
    return None if known is not None and set(wanted) == set(known) else wanted


def _is_used(config: str) -> bool:
    """A configuration that was not read, with --no-config, is not known to be the user's."""
    return (CONFIG, config) in _checked or not _may_be_planted(CONFIG, config)


def adopt_home(config: str) -> None:
    """Note a configuration home that the user has looked at."""
    _checked.add((CONFIG, config))
    note_homes()


def _default_homes() -> tuple[tuple[str, str], ...]:
    try:
        state, config = default_homes()
    except NetsandboxError:
        return ()
    return (STATE, os.path.realpath(state)), (CONFIG, os.path.realpath(config))


def check_home(kind: str, path: str, variable: str = "") -> str:
    """*path*, which *variable* names, unless an earlier session may have put there what this one would read."""
    if (kind, path) not in _checked:
        if _may_be_planted(kind, path):
            what, usual = ("state", "XDG_STATE_HOME") if kind == STATE else ("configuration", "XDG_CONFIG_HOME")
            advice = "remove it" if kind == STATE else f"look at it, then run `{_adoption(path, variable or usual)}`"
            raise HostError(
                f"{path!a} was never used as {what}, and an earlier session may have written it; {advice}, or unset"
                f" {variable or usual}"
            )
        _checked.add((kind, path))
    return path


def _adoption(path: str, variable: str) -> str:
    """With the variable: it may have been set for one command, and `trust` knows the folder by it alone."""
    from netsandbox.text import shell_quoted

    value = os.environ.get(variable)
    return f"{f'{variable}={shell_quoted(value)} ' if value else ''}netsandbox trust {shell_quoted(path)}"


def _may_be_planted(kind: str, path: str) -> bool:
    known = _known()
    if known is None or (kind, os.path.realpath(path)) in known or first_session() is None:
        return False
    try:
        return bool(os.listdir(path)) and user_can_change(path) and not (has_fixed_home() and _is_unreached(path))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _is_unreached(path: str) -> bool:
    """Whether no session could write there: where the home takes no note, that is all that is known of a home."""
    from netsandbox.runtime.written_folders import writers

    return not any(True for _ in writers(os.path.realpath(path)))


def _known() -> tuple[tuple[str, str], ...] | None:
    """None: no session has noted anything yet."""
    try:
        text = os.fsdecode(content(os.path.join(memory_home(), HOMES), _MAX_SIZE))
    except (FileNotFoundError, NotADirectoryError, NetsandboxError):
        return None
    except OSError as error:
        raise unusable(f"cannot read the homes in use in {memory_home()}", error) from None
    return tuple((line[0], line[1:]) for line in text.split("\0") if line[1:2] == "/")
