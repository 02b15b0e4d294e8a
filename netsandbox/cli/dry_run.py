"""`netsandbox run --dry-run --backend seatbelt`: print the profile that a Mac would enforce, and run nothing.

Works on any system. What only a session knows (the ports of its doors, its window, its id) is stood in for, and the
first lines of the output say so.
"""

from __future__ import annotations

import os
import sys

from netsandbox_portmap import window
from netsandbox_portmap.strategies import ISOLATE, default_strategy

from netsandbox.errors import UsageError
from netsandbox.localhost.reservation import HOST_LOCKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from netsandbox.policy.policy import Policy
    from netsandbox.seatbelt.profile_settings import NetworkSettings, OwnPlaces, ProfileSettings
    from netsandbox.settings import RunSettings

SESSION = "SESSION"
NOTE = """\
; What `netsandbox run` would apply on a Mac with these options. Stand-ins, which each session chooses anew: the ports
; of the doors ({doors}), the window {base} to {last} unless it was asked for, and {session} for the session's id.

"""


def dry_run(backend: str, policy: Policy, settings: RunSettings) -> int:
    """Print the profile; the exit status."""
    if backend != "seatbelt":
        raise UsageError(
            "--dry-run prints the profile of --backend seatbelt; for what a policy allows, use `netsandbox explain`"
        )
    sys.stdout.write(profile_text(policy, settings))
    return 0


def profile_text(policy: Policy, settings: RunSettings) -> str:
    """The profile that these options make, behind a note on its stand-ins."""
    if settings.localhost.chosen and settings.localhost.strategy == ISOLATE:
        raise UsageError("isolate does not exist on macOS; use --network-strategy fail, rewire-device or rewire-port")
    from netsandbox.seatbelt.profile_settings import resolve
    from netsandbox.seatbelt.session_profile import session_profile

    planned = resolve(profile_settings(policy, settings, os.environ, _working()), os.path.realpath, os.path.isdir)
    return note(planned.network) + session_profile(planned)


def profile_settings(
    policy: Policy, settings: RunSettings, environment: Mapping[str, str], working: str
) -> ProfileSettings:
    """What a session in *working* would have; its paths are not resolved yet."""
    from netsandbox.seatbelt.profile_settings import ProfileSettings

    temporary = (environment.get("TMPDIR") or "/tmp", "/tmp")  # noqa: S108 (a Mac's, for the session to use)
    return ProfileSettings(
        working=working,
        home=environment.get("HOME") or "",
        temporary=tuple(dict.fromkeys(temporary)),
        own=_own(settings),
        network=_network(policy, settings),
    )


def note(network: NetworkSettings) -> str:
    doors = [str(port) for port in (network.http_door, network.dns_door, network.asking_door) if port]
    last = network.base + network.count - 1
    return NOTE.format(doors=", ".join(doors) or "none", base=network.base, last=last, session=SESSION)


def _working() -> str:
    try:
        return os.getcwd()
    except OSError:
        raise UsageError("the working directory does not exist any more; change to one that does") from None


def _own(settings: RunSettings) -> OwnPlaces:
    from netsandbox.audit.places import sessions_dir, state_home
    from netsandbox.seatbelt.profile_settings import OwnPlaces

    log = os.path.abspath(settings.audit_log) if settings.audit_log else ""
    logs = (log, *(f"{log}.{number}" for number in range(1, 7))) if log else ()
    packages = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return OwnPlaces(
        hidden=(state_home(), HOST_LOCKS, *logs),
        sealed=(packages, *filter(None, (settings.config,))),
        port_map=os.path.join(sessions_dir(), SESSION, "ports"),
    )


def _network(policy: Policy, settings: RunSettings) -> NetworkSettings:
    from netsandbox.policy.policy import FILTERED, ONLINE
    from netsandbox.seatbelt.profile_settings import DOORS, NOTHING, NetworkSettings

    local = settings.localhost
    base, count = local.base or local.pool[0], local.count or window.SIZES[0]
    first = base + count if base + count <= 65533 else base - 3
    out = policy.mode in (FILTERED, ONLINE)
    return NetworkSettings(
        mode=DOORS if out else NOTHING,
        http_door=first if out else 0,
        dns_door=first + 1 if out else 0,
        asking_door=first + 2,
        strategy=local.strategy if local.chosen else default_strategy("darwin"),
        base=base,
        count=count,
        connect_host=local.connect_host,
        unix_sockets=tuple(policy.allow_unix_sockets),
    )
