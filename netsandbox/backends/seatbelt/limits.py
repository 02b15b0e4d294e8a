"""Which limits a Mac can hold: those of each process. It counts no memory and no processes of a session."""

from __future__ import annotations

import resource

from netsandbox.errors import UsageError
from netsandbox.policy.limits import shown_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.policy.limits import Limits

RESOURCES = {"files": resource.RLIMIT_NOFILE, "file-size": resource.RLIMIT_FSIZE, "core": resource.RLIMIT_CORE}


def resource_limits(limits: Limits) -> list[tuple[int, int]]:
    """Resources and values for setrlimit(2). A lower hard limit of the caller stays."""
    found = []
    for name, value in limits:
        if name not in RESOURCES:
            raise UsageError(f"--limit {name}: a Mac holds only {', '.join(RESOURCES)}; leave it out, or use Linux")
        hard = resource.getrlimit(RESOURCES[name])[1]
        found.append((RESOURCES[name], value if hard == resource.RLIM_INFINITY else min(value, hard)))
    return found


def limit_lines(limits: Limits) -> list[str]:
    return [f"limit {name}={shown_value(name, value)}: rlimit, each process" for name, value in limits]
