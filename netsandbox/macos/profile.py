"""The profile of one session, from its policy, its places and its doors."""

from __future__ import annotations

import os

from netsandbox.audit.places import state_home
from netsandbox.errors import UsageError
from netsandbox.linux.view import packages
from netsandbox.localhost.reservation import HOST_LOCKS
from netsandbox.policy.policy import FILTERED, ONLINE
from netsandbox.seatbelt.profile_settings import (
    DOORS,
    NOTHING,
    NetworkSettings,
    OwnPlaces,
    ProfileSettings,
    resolve,
)
from netsandbox.seatbelt.session_profile import session_profile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from netsandbox.macos.reservation import MacReservation
    from netsandbox.policy.policy import Policy
    from netsandbox.settings import RunSettings

ROTATED = 6  # logs beside the newest
TERMINALS = "/dev/tty"


def has_door(policy: Policy) -> bool:
    """Whether anything may leave: without that the profile opens no door at all."""
    return policy.mode in (FILTERED, ONLINE)


def profile_text(
    policy: Policy,
    settings: RunSettings,
    environment: Mapping[bytes, bytes],
    reservation: MacReservation,
    command: str,
    *,
    log: str,
    stdin: int,
) -> str:
    """What the kernel is to enforce, or an error."""
    planned = ProfileSettings(
        working=_working(),
        home=_text(environment, b"HOME"),
        temporary=_temporary(environment),
        executables=_executables(command, _text(environment, b"PATH")),
        terminal=_terminal(stdin),
        own=_own(settings, reservation, log),
        network=_network(policy, reservation),
    )
    return session_profile(resolve(planned, os.path.realpath, os.path.isdir))


def _network(policy: Policy, reservation: MacReservation) -> NetworkSettings:
    window, local = reservation.window, reservation.settings
    assert window is not None
    door = has_door(policy)
    return NetworkSettings(
        mode=DOORS if door else NOTHING,
        http_door=reservation.mixed.port if door else 0,
        asking_door=reservation.asking.port if reservation.asking is not None else 0,
        strategy=local.strategy,
        base=window.base,
        count=window.count,
        connect_host=local.connect_host,
        unix_sockets=tuple(policy.allow_unix_sockets),
    )


def _own(settings: RunSettings, reservation: MacReservation, log: str) -> OwnPlaces:
    return OwnPlaces(
        hidden=(state_home(), HOST_LOCKS, *_logs(settings, log)),
        sealed=(*packages(), *settings.configs),
        port_map=reservation.map.path if reservation.map is not None else "",
    )


def _logs(settings: RunSettings, log: str) -> tuple[str, ...]:
    """The state folder holds the log, unless the user placed it elsewhere: in a file, or in a folder of many logs."""
    if not settings.audit_log:
        return ()
    if log != os.path.abspath(settings.audit_log):
        return (os.path.dirname(log),)
    return (log, *(f"{log}.{number}" for number in range(1, ROTATED + 1)))


def _temporary(environment: Mapping[bytes, bytes]) -> tuple[str, ...]:
    named = _text(environment, b"TMPDIR") or "/tmp"  # noqa: S108 (the user's, for the session to use)
    return tuple(dict.fromkeys((named, "/tmp")))  # noqa: S108


def _executables(command: str, path: str) -> tuple[str, ...]:
    """The command itself, wherever it is: that it may run was the user's word."""
    if "/" in command:
        return (os.path.abspath(command),) if os.path.isfile(command) else ()
    for folder in path.split(":"):
        found = os.path.join(folder, command)
        if folder.startswith("/") and os.access(found, os.X_OK) and os.path.isfile(found):
            return (found,)
    return ()


def _terminal(stdin: int) -> str:
    try:
        name = os.ttyname(stdin)
    except OSError:
        return ""
    return name if name.startswith(TERMINALS) else ""


def _text(environment: Mapping[bytes, bytes], name: bytes) -> str:
    return os.fsdecode(environment.get(name, b""))


def _working() -> str:
    try:
        return os.getcwd()
    except OSError:
        raise UsageError("the working directory does not exist any more; change to one that does") from None
