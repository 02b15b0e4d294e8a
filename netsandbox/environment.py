"""The command's environment (pure): the caller's, with the proxy variables pointing at our door or gone.

Proxy variables are convenience, not the boundary: without them every connection still ends at a door. What the caller
had set is never inherited, in any spelling: it would name a proxy that the session cannot reach.
"""

from __future__ import annotations

from netsandbox.linux import ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DOOR = b"http://127.0.0.1:%d" % ports.MIXED
LOOPBACK = b"localhost,127.0.0.1,::1,.localhost"
PROXY_NAMES = (b"http_proxy", b"https_proxy", b"all_proxy")
EVERY_NAME = frozenset((*PROXY_NAMES, b"no_proxy", b"ftp_proxy", b"socks_proxy", b"rsync_proxy"))


def session_environment(outer: Mapping[bytes, bytes], session: str, *, proxy_env: bool) -> dict[bytes, bytes]:
    """What the command sees."""
    inner = {name: value for name, value in outer.items() if name.lower() not in EVERY_NAME}
    inner[b"NETSANDBOX_SESSION"] = session.encode("ascii")
    if proxy_env:
        for name in PROXY_NAMES:
            inner[name] = inner[name.upper()] = DOOR
        inner[b"no_proxy"] = inner[b"NO_PROXY"] = LOOPBACK
    return inner
