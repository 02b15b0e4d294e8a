"""When the first session of this user began: what is older than that, no session can have written.

    <state home>/first-session    nanoseconds, written once, before the first command runs

No session sees the file (INV-8). Where sessions are older than it, the oldest that left a directory counts; where that
is not known either, nothing is old enough (INV-1).
"""

from __future__ import annotations

import os
import time

from netsandbox.errors import HostError, NetsandboxError
from netsandbox.paths import FIRST_SESSION, list_sessions, sessions_dir, state_home

UNKNOWN = 0  # older than every file
_LONGEST = 20


def note(state: str) -> None:
    """Write it, unless another session was faster. The file's own time counts too: that is the clock of files."""
    known = _oldest_session()
    try:
        place = os.open(os.path.join(state, FIRST_SESSION), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    except OSError as error:
        advice = "set XDG_STATE_HOME to a directory that can be written"
        raise HostError(f"cannot note the first session in {state}: {error.strerror}; {advice}") from None
    try:
        moment = min(time.time_ns(), os.fstat(place).st_ctime_ns) if known is None else known
        os.write(place, str(moment).encode("ascii"))
    except OSError:
        pass  # an empty file is an unknown time
    finally:
        os.close(place)


def first_session() -> int | None:
    """Its time in nanoseconds; None as long as there was none."""
    try:
        descriptor = os.open(os.path.join(state_home(), FIRST_SESSION), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            return int(os.read(descriptor, _LONGEST))
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return _oldest_session()
    except (OSError, ValueError, NetsandboxError):
        return UNKNOWN


def _oldest_session() -> int | None:
    """By its name, which has the time in it; None where no session was ever kept."""
    try:
        if not os.path.lexists(sessions_dir()):
            return None
        found = list_sessions()
    except OSError:
        return UNKNOWN
    return _moment(found[-1]) if found else UNKNOWN


def _moment(session: str) -> int:
    from calendar import timegm

    try:
        seconds = timegm(time.strptime(session[:15], "%Y%m%dT%H%M%S"))
    except ValueError:
        return UNKNOWN
    return (seconds * 1000 + int(session[15:18])) * 1_000_000
