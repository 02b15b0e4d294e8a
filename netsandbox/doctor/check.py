"""One check of the machine: the requirement, the finding, and the remedy."""

from __future__ import annotations

import os

from netsandbox.errors import NetsandboxError
from netsandbox.frozen import frozen
from netsandbox.paths import state_home

OK, MISSING, NOTE, UNTRIED = "ok", "MISSING", "note", "not tried"


@frozen
class Check:
    """`status`: ok, MISSING (no session can run), note (something optional is missing), not tried."""

    name: str
    status: str
    found: str
    remedy: str | None = None


def state_directory() -> Check:
    """The directory, or the nearest existing one above it; nothing is created."""
    name = "state directory"
    try:
        place = state_home()
    except NetsandboxError as error:
        return Check(name, MISSING, "unknown", str(error))
    above = place
    while not os.path.exists(above) and above != "/":
        above = os.path.dirname(above)
    if os.path.isdir(above) and os.access(above, os.W_OK | os.X_OK):
        return Check(name, OK, place)
    return Check(name, MISSING, f"{above} cannot be written", "set XDG_STATE_HOME to a directory of yours")
