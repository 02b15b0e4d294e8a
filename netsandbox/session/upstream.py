"""Where a session sends allowed traffic: the host's name servers, and a parent proxy if there is one.

Both are read before the command runs. A command of root could replace the host's files, and choose a name server for
allowed names.
"""

from __future__ import annotations

from netsandbox.errors import UsageError
from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_proxy.contract import Parent

    from netsandbox.audit.log import AuditLog
    from netsandbox.policy.policy import Policy
    from netsandbox.session.approvals.inbox import Inbox
    from netsandbox.settings import RunSettings


@frozen
class HostResolver:
    """The servers that the user named, or the text of the host's two files."""

    servers: tuple[tuple[str, int], ...]
    resolv_conf: str = ""
    hosts: str = ""


@frozen
class ServiceInputs:
    """The inputs of a session's services, independent of the backend."""

    policy: Policy
    log: AuditLog
    resolver: HostResolver
    parent: Parent | None = None
    inbox: Inbox | None = None  # None: the user is not asked


def host_resolver(settings: RunSettings) -> HostResolver:
    """Only the servers that the user named, if any; otherwise the host's configuration, hosts file first."""
    if settings.upstream_dns:
        return HostResolver(settings.upstream_dns)
    return HostResolver((), _read("/etc/resolv.conf"), _read("/etc/hosts"))


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:  # names then fail to resolve, which denies
        return ""


def parent_proxy(settings: RunSettings) -> Parent | None:
    """The proxy of `--upstream-proxy`. It is never taken from the environment."""
    return None if settings.upstream_proxy is None else resolve_parent(settings.upstream_proxy)


def resolve_parent(url: str) -> Parent:
    """The addresses of the parent proxy *url*: `http://[USER:PASSWORD@]HOST:PORT`, whose form is already checked.

    The user chose the proxy, so the address guard does not apply to its addresses. Names go to it unresolved, so the
    address guard cannot check what it resolves them to (docs/threat-model.md).
    """
    import socket

    from netsandbox_proxy.contract import Parent

    authority = url.partition("://")[2].rstrip("/")
    credentials, _, place = authority.rpartition("@")
    host, _, port = place.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except OSError as error:
        raise UsageError(f"--upstream-proxy: cannot resolve {host}: {error}; check the URL") from None
    addresses = [(int(family), str(address[0])) for family, _, _, _, address in found]
    return Parent(addresses, int(port), _basic(credentials) if credentials else None)


def _basic(credentials: str) -> bytes:
    from base64 import b64encode
    from urllib.parse import unquote_to_bytes

    user, _, password = credentials.partition(":")
    return b"Basic " + b64encode(unquote_to_bytes(user) + b":" + unquote_to_bytes(password))
