"""The localhost settings that the broker backend can keep (pure). Any other setting is an error."""

from __future__ import annotations

from netsandbox_portmap import ISOLATE, REWIRE_DEVICE

from netsandbox.errors import UsageError
from netsandbox.frozen import copy_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_portmap.localhost_settings import LocalhostSettings

STAYS = "a session of this backend shares the host's loopback"


def broker_settings(wanted: LocalhostSettings) -> LocalhostSettings:
    """*wanted* as this backend can keep it. An error for what only a network of the session's own could."""
    if wanted.strategy == ISOLATE and wanted.chosen:
        raise UsageError(f"isolate: {STAYS}; use --network-strategy {REWIRE_DEVICE}, or --backend namespaces")
    if wanted.engine != "kernel":
        raise UsageError("the broker rewrites ports for every program; leave out --rewrite-engine preload")
    if wanted.publish is not None:
        raise UsageError(f"{STAYS}, so no port is hidden; leave out --publish and --no-publish, or use namespaces")
    return copy_with(wanted, strategy=REWIRE_DEVICE) if wanted.strategy == ISOLATE else wanted
