"""Which wishes for a session's localhost a Mac can keep (pure). What it cannot keep is an error, not half a promise."""

from __future__ import annotations

from netsandbox_portmap.strategies import FAIL, ISOLATE

from netsandbox.errors import UsageError
from netsandbox.frozen import copy_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_portmap.localhost_settings import LocalhostSettings


def check_for_mac(wanted: LocalhostSettings) -> None:
    """An error for what no Mac keeps."""
    if wanted.strategy == ISOLATE:
        raise UsageError(
            "isolate does not exist on macOS, where all programs share one localhost; use --network-strategy fail (a"
            " window of ports), rewire-port (any port, mapped to the window) or rewire-device (an address of its own)"
        )
    if wanted.publish is not None:
        raise UsageError(
            "on macOS a session's servers listen on the Mac's own localhost, so nothing is published or hidden;"
            " leave out --publish and --no-publish"
        )
    if wanted.strategy == FAIL and wanted.device is not None:
        raise UsageError(
            "Seatbelt knows no loopback address but localhost; leave out --listening-loopback, or use"
            " --network-strategy rewire-device"
        )


def mac_settings(wanted: LocalhostSettings, *, library: bool) -> LocalhostSettings:
    """*wanted* with the engine that there is for its strategy: the *library*, or for `fail` Seatbelt alone."""
    check_for_mac(wanted)
    engine = "preload" if library or wanted.strategy != FAIL else "kernel"
    return copy_with(wanted, engine=engine)
