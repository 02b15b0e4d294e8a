"""Where a session sends allowed traffic: the host's name servers, and a parent proxy if there is one.

Both are read before the command runs (`session.session`); without a proxy, this module is loaded after that.
"""

from __future__ import annotations

from netsandbox.errors import UsageError
from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_proxy.contract import Parent

    from netsandbox.audit.denial_file import DenialFile
    from netsandbox.audit.log import AuditLog
    from netsandbox.policy.policy import Policy
    from netsandbox.session.approvals.inbox import Inbox
    from netsandbox.session.inspection import SessionInspection


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
    inspection: SessionInspection | None = None
    denials: DenialFile | None = None  # gets every denied lookup, also those that the log folds


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
