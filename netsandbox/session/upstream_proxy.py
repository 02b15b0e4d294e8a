"""A parent proxy, named by `--upstream-proxy` and never inherited from the environment."""

from __future__ import annotations

from netsandbox_proxy.contract import Parent

from netsandbox.errors import UsageError


def resolve_parent(url: str) -> Parent:
    """Where the parent proxy of *url* is; `http://[USER:PASSWORD@]HOST:PORT`, already checked for form.

    The proxy is the user's own choice, so its addresses are not guarded; names go to it unresolved, so the address
    guard cannot judge what it resolves them to (docs/threat-model.md).
    """
    import socket

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
