"""What netsandbox-apply, or the stage in its place, reports, and what that means for the user (pure)."""

from __future__ import annotations

import os

from netsandbox.backends.contract import exec_failure
from netsandbox.errors import HostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.errors import NetsandboxError

MEANINGS = {
    "profile": "this macOS does not accept the Seatbelt profile",
    "self-test": "the Seatbelt profile was accepted and does not hold",
    "watch": "cannot watch over the command",
    "plan": "the helper did not get what it needs",
    "environment": "the helper did not get what it needs",
}
ADVICE = "nothing was run; report it with the output of `sw_vers` and `netsandbox run --dry-run --backend seatbelt`"
SPOKEN = "sandbox-exec did not start the session"
LOST = "the helper ended without a word; nothing was run, see `netsandbox doctor`"


def read_report(data: bytes) -> tuple[str, int, str] | None:
    """Step, error number and detail; None when *data* is no report."""
    parts = data.split(b"\0", 2)
    if len(parts) != 3 or not parts[0] or not parts[1].isdigit():
        return None
    step, number, detail = parts
    return step.decode("ascii", "replace"), int(number), detail.decode("utf-8", "replace")


def failure(data: bytes, command: str, path: str, words: str = "") -> NetsandboxError:
    """The error for what the helper wrote before it left; *words* are what sandbox-exec said, in no form."""
    report = read_report(data)
    if report is None:
        return HostError(f"{SPOKEN} ({_line(words)}); {ADVICE}" if words else LOST)
    step, number, detail = report
    if step == "exec":
        return exec_failure(command, number, path)
    why = os.strerror(number) if number else "no error"
    told = _line(f"{why}: {detail}" if detail else why)
    return HostError(f"{MEANINGS.get(step, 'cannot set the session up')} ({step}: {told}); {ADVICE}")


def _line(text: str) -> str:
    """The system's own words, on one line."""
    return ascii(text)[1:-1]
