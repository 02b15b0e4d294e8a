"""Denials that programs bring about by habit and do without: they are recorded and listed, but neither told at the end
of a session nor counted by `--fail-on-denied`, and `explain --last` prefers any other. Pure.

The C library looks for name services at every lookup of a user or host, shells read start-up files, and package
managers look for logins. A socket that is refused before it has an address, as a datagram socket
is, may have been meant for a name service too.
"""

from __future__ import annotations

from netsandbox.policy import reasons
from netsandbox.policy.file_denials import is_quiet
from netsandbox.policy.file_rules import READ, is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FILE_EVENTS = ("file", "exec")  # as `audit.record_line.FILE_EVENTS`
# Sockets of nscd, nslcd, sssd, winbind, systemd's name services and logs, Avahi and syslog.
NAME_SERVICES = (
    *("/run/nscd", "/var/run/nscd", "/run/nslcd", "/var/run/nslcd", "/var/lib/sss/pipes", "/run/samba/winbindd"),
    *("/run/systemd/userdb", "/run/systemd/resolve", "/run/systemd/journal", "/run/systemd/notify"),
    *("/run/avahi-daemon", "/var/run/avahi-daemon", "/dev/log"),
)
STOPPED = (-1, -2, -15, 129, 130, 143)  # as `subprocess` has it, and as shells do
NETWORK_FAMILIES = ("inet", "inet6", "packet")  # a raw socket of these would be a way out


def did_well(status: int) -> bool:
    """Whether a command succeeded, or ran until its user ended it, as a dev server does (SIGHUP, SIGINT, SIGTERM)."""
    return status in (0, *STOPPED)


def is_habit(record: Mapping[str, object], home: str, *, succeeded: bool = False) -> bool:
    """Whether *record*, a denial, is one of these. *succeeded*: the command did, so it needed no login either."""
    reason = record.get("reason")
    if reason == reasons.MADE_LATER:
        return True
    if reason == reasons.UNIX_SOCKET:
        return is_habitual_socket(record)
    if reason == reasons.SOCKET_FAMILY:
        return record.get("family") not in NETWORK_FAMILIES
    if record.get("event") not in FILE_EVENTS:
        return False
    return is_quiet(str(record.get("path")), home, str(record.get("operation", READ)), succeeded=succeeded)


def is_habitual_socket(record: Mapping[str, object]) -> bool:
    """One whose path nobody knows, that of a name service, or one that is not there."""
    path = record.get("path")
    if path is None or any(is_within(str(path), each) for each in NAME_SERVICES):
        return True
    return record.get("call") == "connect" and record.get("detail") is not None
