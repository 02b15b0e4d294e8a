"""The command's environment (pure): the caller's variables, with the proxy variables pointing at our door or removed.

SANDBOX_MODE, NETSANDBOX_SESSION and, if the session has a name already, NETSANDBOX_NAME tell the command where it runs.
Proxy variables are a convenience, not the boundary: without them every connection still ends at a door. The caller's
own proxy variables are never inherited, in any spelling, since they name a proxy that the session cannot reach. A
variable without a name is dropped, because Python passes it to no program.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

LOOPBACK = b"localhost,127.0.0.1,::1,.localhost"
PROXY_NAMES = (b"http_proxy", b"https_proxy", b"all_proxy")
NAME = b"NETSANDBOX_NAME"
EVERY_NAME = frozenset((*PROXY_NAMES, b"no_proxy", b"ftp_proxy", b"socks_proxy", b"rsync_proxy"))


def session_environment(
    outer: Mapping[bytes, bytes], session: str, *, mode: str, name: str | None, proxy: bytes | None
) -> dict[bytes, bytes]:
    """The variables of the command. *proxy* is the URL of the door; None sets no proxy variable."""
    inner = {key: value for key, value in outer.items() if key.lower() not in EVERY_NAME and key not in (NAME, b"")}
    inner[b"NETSANDBOX_SESSION"] = session.encode("ascii")
    inner[b"SANDBOX_MODE"] = mode.encode("ascii")
    if name is not None:
        inner[NAME] = name.encode("ascii")
    if proxy is not None:
        for key in PROXY_NAMES:
            inner[key] = inner[key.upper()] = proxy
        inner[b"no_proxy"] = inner[b"NO_PROXY"] = LOOPBACK
    return inner
