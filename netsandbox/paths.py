"""The folders of this user that netsandbox keeps, our own packages, and the ids of sessions.

    <state home>/netsandbox/sessions/<id>/audit.jsonl, .1 … .6

    <state home>/netsandbox/first-session    nanoseconds, written once before the first command runs: no session can
                                             have written an older file. No session sees it (INV-8).
    <memory home>/first-session, homes       the same, and the homes that sessions used (`runtime.used_homes`)

An id is a sortable UTC time to the millisecond and 64 random bits; nothing else is ever joined to a path (attack 190).
"""

from __future__ import annotations

import os
import time
from errno import EDQUOT, ENOSPC

from netsandbox.errors import HostError, NetsandboxError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LOG_NAME = "audit.jsonl"
STOPPED = ".stopped"  # behind the name of a log: a link that says why nothing more was written
OUTPUT_NAME = "output"  # of a session that runs in the background (`session.detached`)
PACKAGE = os.path.dirname(os.path.abspath(__file__))
COMPONENTS = ("proxy", "dns", "portmap", "interpose")
PROFILES, LISTS = "profiles", "projects"  # folders in the configuration home
PROFILE_FOLDER = "NETSANDBOX_PROFILE_DIR"
FIRST_SESSION = "first-session"  # in the state home, see `first_session`
WRITTEN = "written"  # in the memory home, see `runtime.written_folders`
UNKNOWN = 0  # a time of the first session before which no file is old
_MAX_DIGITS = 20
_TIME_LENGTH, _RANDOM_LENGTH = 18, 16


def home() -> str:
    """The user's home folder."""
    named = os.environ.get("HOME", "")
    if named.startswith("/"):
        return named
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        raise NetsandboxError("no home directory is known; set HOME or XDG_STATE_HOME") from None


def short(path: str) -> str:
    """*path* with `~` for the user's home."""
    own = home().rstrip("/")
    return f"~{path[len(own) :]}" if own and f"{path}/".startswith(f"{own}/") else path


def working_folder() -> str | None:
    """None if it was removed, or if it is in a folder that this user may not read."""
    try:
        return os.getcwd()
    except OSError:
        return None


def is_program(word: str) -> bool:
    """Whether a shell would find a program of this name or path. `shutil.which` loads much for it."""
    folders = ("",) if "/" in word else os.environ.get("PATH", os.defpath).split(":")
    paths = [os.path.join(folder, word) for folder in folders] if word else []
    return any(os.path.isfile(path) and os.access(path, os.X_OK) for path in paths)


def state_home() -> str:
    """`$XDG_STATE_HOME/netsandbox` or `~/.local/state/netsandbox`."""
    return _xdg("XDG_STATE_HOME", _default_state_home)


def config_home() -> str:
    """`$XDG_CONFIG_HOME/netsandbox` or `~/.config/netsandbox`."""
    return _xdg("XDG_CONFIG_HOME", _default_config_home)


def named_profile_folder() -> str | None:
    """The folder of the user's profiles that a variable names; it takes the place of the one in the configuration
    home."""
    return os.environ.get(PROFILE_FOLDER) or None


def _xdg(variable: str, default: Callable[[], str]) -> str:
    """XDG demands that a relative path in *variable* is ignored."""
    base = os.environ.get(variable, "")
    return os.path.join(base, "netsandbox") if base.startswith("/") else default()


def _default_state_home() -> str:
    return os.path.join(home(), ".local", "state", "netsandbox")


def _default_config_home() -> str:
    return os.path.join(home(), ".config", "netsandbox")


def memory_home() -> str:
    """`~/.local/share/netsandbox`, whatever the variables say: the time of the first session and the homes that were
    used. Both must be known when a variable names a new state home, or the user has deleted it."""
    return os.path.join(home(), ".local", "share", "netsandbox")


def default_homes() -> tuple[str, str]:
    """The state and configuration homes of a user who sets no variable."""
    return _default_state_home(), _default_config_home()


def made_state_home() -> str:
    """The state home, created if need be."""
    state = state_home()
    try:
        os.makedirs(state, 0o700, exist_ok=True)
    except OSError as error:
        raise unusable(f"cannot make {state}", error) from None
    return state


def unusable(what: str, error: OSError) -> HostError:
    """For a folder of ours: *what* cannot be done there, and a way out."""
    return HostError(f"{what}: {error.strerror}; {_way_out(error)}")


def _way_out(error: OSError) -> str:
    if error.errno in (ENOSPC, EDQUOT):
        return "free space on its disk"
    if isinstance(error, PermissionError) and _is_of_another(home()):
        import pwd

        own = pwd.getpwuid(os.geteuid()).pw_dir
        return f"HOME is another user's: run `export HOME={'$(mktemp -d)' if _is_of_another(own) else own}` first"
    return "run `export XDG_STATE_HOME=$(mktemp -d)` first, or set it to a directory that can be written"


def _is_of_another(folder: str) -> bool:
    """Whether it is there, and not this user's; also a home that is not there is nobody's to write."""
    try:
        return os.stat(folder).st_uid != os.geteuid()
    except OSError:
        return folder != home()


def has_fixed_home() -> bool:
    """Whether the home is on a file system that nobody can write now."""
    try:
        return bool(os.statvfs(home()).f_flag & os.ST_RDONLY)
    except (OSError, NetsandboxError):
        return False


def session_state_home() -> str:
    """The state home for a session that is about to begin; the time of the first one is noted, also where it outlives
    the state home."""
    state = made_state_home()
    if not os.path.lexists(os.path.join(state, FIRST_SESSION)):
        if first_session() is None:
            _make_written(state)
        note_first_session(state)
    try:
        memory = memory_home()
        if not os.path.lexists(os.path.join(memory, FIRST_SESSION)) and is_made(memory):
            note_first_session(memory)
    except NetsandboxError:  # no home is known, or it takes no file: then no session can write there either
        pass
    return state


def _make_written(state: str) -> None:
    """The folder of marks (`runtime.written_folders`), before the first session is noted: where it is missing later,
    marks were lost."""
    try:
        kept = memory_home() if is_made(memory_home()) else state
        os.makedirs(os.path.join(kept, WRITTEN), 0o700, exist_ok=True)
    except (NetsandboxError, OSError):  # the first mark is an error then
        pass


def note_first_session(folder: str) -> None:
    """Write the time, unless another session was faster. The file's own time counts too: files are compared with it."""
    known = first_session()
    try:
        place = os.open(os.path.join(folder, FIRST_SESSION), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    except OSError as error:
        raise unusable(f"cannot note the first session in {folder}", error) from None
    try:
        moment = min(time.time_ns(), os.fstat(place).st_ctime_ns) if known is None else known
        os.write(place, str(moment).encode("ascii"))
    except OSError:
        pass  # an empty file is an unknown time
    finally:
        os.close(place)


def first_session() -> int | None:
    """The time of the user's first session in nanoseconds; None as long as there was none. The oldest of these counts:
    the time in the memory home, that in the state home, or else the oldest session that left a directory there. Where
    one of them is unreadable, no file is old enough (INV-1)."""
    times = [time for time in (_noted(memory_home), _noted(state_home, _oldest_session)) if time is not None]
    return min(times, default=None)


def _noted(folder: Callable[[], str], otherwise: Callable[[], int | None] = lambda: None) -> int | None:
    """The time in *folder*; None as long as there is none."""
    try:
        descriptor = os.open(os.path.join(folder(), FIRST_SESSION), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            return int(os.read(descriptor, _MAX_DIGITS))
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return otherwise()
    except (OSError, ValueError, NetsandboxError):
        return UNKNOWN


def _oldest_session() -> int | None:
    """The time in the oldest session's id; None where no session was ever kept."""
    try:
        if not os.path.lexists(sessions_dir()):
            return None
        found = list_sessions()
    except OSError:
        return UNKNOWN
    return session_time(found[-1]) if found else UNKNOWN


def session_time(session: str) -> int:
    """When the session with this id began, in nanoseconds."""
    from calendar import timegm

    try:
        seconds = timegm(time.strptime(session[:15], "%Y%m%dT%H%M%S"))
    except ValueError:
        return UNKNOWN
    return (seconds * 1000 + int(session[15:18])) * 1_000_000


def user_can_change(folder: str) -> bool:
    """Whether a command of this user can replace what lies in *folder*; the user's own folder takes only a chmod."""
    if os.access(folder, os.W_OK):
        return True
    try:
        return os.stat(folder).st_uid == os.geteuid()
    except OSError:
        return True


def new_session_id() -> str:
    now = time.time_ns() // 1_000_000
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(now // 1000))}{now % 1000:03d}-{os.urandom(8).hex()}"


def is_session_id(text: str) -> bool:
    moment, dash, random = text[:_TIME_LENGTH], text[_TIME_LENGTH : _TIME_LENGTH + 1], text[_TIME_LENGTH + 1 :]
    digits = moment[:8] + moment[9:]
    return (
        dash == "-"
        and len(random) == _RANDOM_LENGTH
        and moment[8:9] == "T"
        and all(char in "0123456789" for char in digits)
        and all(char in "0123456789abcdef" for char in random)
    )


def sessions_dir() -> str:
    return os.path.join(state_home(), "sessions")


def session_dir(session: str) -> str:
    if not is_session_id(session):
        raise UsageError(f"{session!a} is not a session id; `netsandbox audit summary` prints the newest")
    return os.path.join(sessions_dir(), session)


def log_path(session: str, override: str | None = None) -> str:
    """The log of *session*: in its own directory, or at *override* (--audit-log, SANDBOX_AUDIT_LOG).

    An override that is a directory, or ends in a slash, gets one file a session, so that several can run at once.
    """
    if not override:
        return os.path.join(session_dir(session), LOG_NAME)
    path = os.path.abspath(override)
    if override.endswith("/") or os.path.isdir(path):
        return os.path.join(path, f"{session}.jsonl")
    return path


def log_beside(path: str, session: str) -> str:
    """The log of *session* where another one writes *path*."""
    stem, ending = os.path.splitext(path)
    return f"{stem}-{session}{ending}"


def list_sessions() -> list[str]:
    """Ids of the sessions that left a directory, newest first."""
    try:
        names = os.listdir(sessions_dir())
    except FileNotFoundError:
        return []
    return sorted(filter(is_session_id, names), reverse=True)


def is_made(folder: str) -> bool:
    """Whether *folder* exists; it is created if it does not."""
    try:
        os.makedirs(os.path.realpath(folder), 0o700, exist_ok=True)
    except OSError:
        return False
    return True


def packages() -> list[str]:
    """The launcher and its components: side by side when installed, in their folders in a checkout."""
    root = os.path.dirname(PACKAGE)
    found = [PACKAGE]
    for name in COMPONENTS:
        for path in (os.path.join(root, f"netsandbox_{name}"), os.path.join(root, name, f"netsandbox_{name}")):
            if os.path.isdir(path):
                found.append(path)
                break
    return found
