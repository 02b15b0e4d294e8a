"""How the host resolves names, as it was when the session began.

Read before the command runs: a command of root could put other files in their place, and with them a name server of its
own choice for names that are allowed.
"""

from __future__ import annotations

from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.settings import RunSettings


@frozen
class HostResolver:
    """Servers that the user named, or else the text of the host's two files."""

    servers: tuple[tuple[str, int], ...]
    resolv_conf: str = ""
    hosts: str = ""


def host_resolver(settings: RunSettings) -> HostResolver:
    """Servers named by the user are asked alone; otherwise the host's own configuration, hosts file first."""
    if settings.upstream_dns:
        return HostResolver(settings.upstream_dns)
    return HostResolver((), _read("/etc/resolv.conf"), _read("/etc/hosts"))


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:  # an absent file says nothing; names then fail to resolve, which denies
        return ""
