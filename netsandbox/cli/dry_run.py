"""`netsandbox run --dry-run`: print what would be set up, and run nothing.

On Linux that is the plan of the namespaces; on a Mac, and with `--backend seatbelt` on any system, the profile that a
Mac would enforce. What only a session knows (the ports of its doors, its window, its id) is stood in for, and the
first lines of the output say so.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from netsandbox_portmap import default_strategy, window
from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox.backends.seatbelt.profile_inputs import SessionPorts
from netsandbox.errors import UsageError
from netsandbox.frozen import copy_with
from netsandbox.policy.file_rules import PROJECT
from netsandbox.policy.policy import Policy
from netsandbox.settings import RunSettings
from netsandbox.system import IS_LINUX

SESSION = "SESSION"
STDIN = 0
NOTE = """\
; What `netsandbox run` would apply on a Mac with these options. Stand-ins, which each session chooses anew: the ports
; of the doors ({doors}), the window {base} to {last} unless it was asked for, and {session} for the session's id.
; Left out is what each session adds: its command's own file, which may be run, and a text that marks its refusals.

"""


def dry_run(backend: str, command: Sequence[str], policy: Policy, settings: RunSettings) -> int:
    """Print it; the exit status."""
    if backend == "seatbelt":
        text = dry_profile(policy, settings)
    elif backend != "namespaces":
        raise UsageError(f"--dry-run cannot show the backend {backend}; use it with --backend namespaces or seatbelt")
    elif IS_LINUX:
        from netsandbox.cli.dry_run_linux import plan_text

        text = plan_text(command, policy, settings)
    else:
        raise UsageError("the plan of namespaces can be shown on Linux only; leave out --backend")
    sys.stdout.write(text)
    return 0


def dry_profile(policy: Policy, settings: RunSettings) -> str:
    """The profile that these options make for any command, behind a note on its stand-ins."""
    from netsandbox.backends.seatbelt.limits import resource_limits
    from netsandbox.backends.seatbelt.localhost_settings import check_for_mac
    from netsandbox.backends.seatbelt.profile_inputs import ProfilePaths, has_door, profile_text, temporary_folder
    from netsandbox.backends.seatbelt.reservation import MAP_NAME
    from netsandbox.paths import log_path, sessions_dir
    from netsandbox.settings import Command

    local = on_a_mac(settings.localhost)
    check_for_mac(local)
    resource_limits(settings.limits)  # raises for those that a Mac does not hold
    if settings.inspect:
        from netsandbox.session.inspection import NO_INSPECTION

        raise UsageError(NO_INSPECTION)
    ports = stand_ins(local, opens=has_door(policy))
    private_tmp = settings.files.mode == PROJECT and not settings.files.share_tmp
    paths = ProfilePaths(
        log_path(SESSION, settings.audit_log) if settings.audit_log else "",
        os.path.join(sessions_dir(), SESSION, MAP_NAME),
        temporary=temporary_folder(os.environb, SESSION) if private_tmp else "",
    )
    text = profile_text(policy, settings, Command([""], os.environb, (STDIN, 1, 2)), ports, paths)
    return note(ports) + text


def on_a_mac(local: LocalhostSettings) -> LocalhostSettings:
    """*local* as a Mac would have it from the same options: its own default where no strategy was chosen."""
    return local if local.chosen else copy_with(local, strategy=default_strategy("darwin"))


def stand_ins(local: LocalhostSettings, *, opens: bool) -> SessionPorts:
    """The requested window, or the first one, and doors beside it. *opens*: whether anything may leave."""
    from netsandbox.backends.seatbelt.profile_inputs import SessionPorts

    base, count = local.base or local.pool[0], local.count or window.SIZES[0]
    first = base + count if base + count <= 65533 else base - 3
    http, dns = (first, first + 1) if opens else (0, 0)
    return SessionPorts(local.strategy, base, count, http, dns, first + 2)


def note(ports: SessionPorts) -> str:
    doors = [str(port) for port in (ports.http, ports.dns, ports.requests) if port]
    last = ports.base + ports.count - 1
    return NOTE.format(doors=", ".join(doors) or "none", base=ports.base, last=last, session=SESSION)
