"""The localhost settings that macOS can enforce (pure). Any other setting is an error.

Without the preload library a session is stricter, and the user gets a notice.
"""

from __future__ import annotations

from netsandbox_portmap import FAIL, ISOLATE, REWIRE_DEVICE, REWIRE_PORT

from netsandbox.errors import HostError, UsageError
from netsandbox.frozen import copy_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_portmap.localhost_settings import LocalhostSettings


def check_for_mac(wanted: LocalhostSettings) -> None:
    """Raise an error for settings that macOS cannot enforce."""
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
    for door in wanted.connect_host:
        if door.session is not None or door.port is not None:
            raise UsageError(
                f"--connect-host {door}: on macOS all programs share one localhost, so a port keeps its number;"
                f" write --connect-host {door.reached if door.session is None else 'PORT'}, as `netsandbox ports` lists"
            )
    if wanted.strategy == FAIL and wanted.device is not None:
        raise UsageError(
            "Seatbelt knows no loopback address but localhost; leave out --listening-loopback, or use"
            " --network-strategy rewire-device"
        )


def mac_settings(wanted: LocalhostSettings, *, library: bool) -> LocalhostSettings:
    """*wanted* with the engine for its strategy: the *library*, or Seatbelt alone for `fail`."""
    check_for_mac(wanted)
    engine = "preload" if library or wanted.strategy != FAIL else "kernel"
    return copy_with(wanted, engine=engine)


def stricter(wanted: LocalhostSettings, trouble: str) -> LocalhostSettings:
    """*wanted* with Seatbelt alone. A strategy that the user chose is not replaced; *trouble* is the cause."""
    if wanted.strategy not in (REWIRE_DEVICE, REWIRE_PORT):
        return wanted
    if wanted.chosen:
        advice = "reinstall netsandbox, or use --network-strategy fail, which needs no library"
        raise HostError(f"{trouble}, and {wanted.strategy} needs the preload library; {advice}")
    return copy_with(wanted, strategy=FAIL)


def notice(trouble: str) -> str:
    """One line for the user."""
    return (
        f"{trouble}: its servers can listen on ports of its window only (see LISTENING_BASE_PORT), and only"
        " programs that use the proxy variables reach what is allowed; reinstall netsandbox to change that"
    )
