"""The command's environment (pure): the caller's, with the proxy variables pointing at our door or gone, and with
those that say where it is: SANDBOX_MODE, NETSANDBOX_SESSION and, if it has one already, NETSANDBOX_NAME.

Proxy variables are convenience, not the boundary: without them every connection still ends at a door. What the caller
had set is never inherited, in any spelling: it would name a proxy that the session cannot reach. Nor is a variable
without a name, which Python hands on to no program.
"""

from __future__ import annotations

from netsandbox.backends.namespaces import door_ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DOOR = b"http://127.0.0.1:%d" % door_ports.MIXED
LOOPBACK = b"localhost,127.0.0.1,::1,.localhost"
PROXY_NAMES = (b"http_proxy", b"https_proxy", b"all_proxy")
NAME = b"NETSANDBOX_NAME"
EVERY_NAME = frozenset((*PROXY_NAMES, b"no_proxy", b"ftp_proxy", b"socks_proxy", b"rsync_proxy"))


def session_environment(
    outer: Mapping[bytes, bytes], session: str, *, mode: str, name: str | None, proxy_env: bool
) -> dict[bytes, bytes]:
    """What the command sees."""
    inner = {key: value for key, value in outer.items() if key.lower() not in EVERY_NAME and key not in (NAME, b"")}
    inner[b"NETSANDBOX_SESSION"] = session.encode("ascii")
    inner[b"SANDBOX_MODE"] = mode.encode("ascii")
    if name is not None:
        inner[NAME] = name.encode("ascii")
    if proxy_env:
        for key in PROXY_NAMES:
            inner[key] = inner[key.upper()] = DOOR
        inner[b"no_proxy"] = inner[b"NO_PROXY"] = LOOPBACK
    return inner
