"""Which addresses and ports a session may listen on (pure): strategy `fail`, and what the kernel still guards when a
preloaded library does the rewriting (INV-7)."""

from __future__ import annotations

import errno

from netsandbox import system
from netsandbox.frozen import frozen
from netsandbox.policy import reasons
from netsandbox_portmap.strategies import FAIL, REWIRE_DEVICE, default_strategy
from netsandbox_portmap.window import LOCALHOST_IPV4

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_portmap.window import Window

UNPRIVILEGED_PORT = 1024
WILDCARD = "0.0.0.0"  # noqa: S104 (a name, not a bind)
_OTHERWISE = f"or run with --network-strategy {default_strategy(system.NAME)}"


def needs_capability(port: int) -> bool:
    """Whether a bind needs CAP_NET_BIND_SERVICE: in the session's network we have it, and the workload has not."""
    return 0 < port < UNPRIVILEGED_PORT


@frozen
class BindRule:
    """*window* None: any port that needs no privilege, which we have and the command has not. *devices* are IPv4
    spellings; `::1` stands as 127.0.0.1 and `::` as 0.0.0.0."""

    window: Window | None
    devices: tuple[str, ...]

    def judge(self, address: str, port: int) -> tuple[int, str] | None:
        """None, or the error and the reason. Port 0 asks for any port, and is given one of the window."""
        outside = needs_capability(port) if self.window is None else port != 0 and port not in self.window
        if outside:
            return errno.EACCES, reasons.OUTSIDE_WINDOW
        if address not in self.devices:
            return errno.EADDRNOTAVAIL, reasons.WRONG_DEVICE
        return None

    def text(self) -> str:
        """What is allowed and what to do, for the person who reads stderr."""
        device = "localhost" if LOCALHOST_IPV4 in self.devices else self.devices[0]
        if self.window is None:
            return f"on {device} only; bind localhost, {_OTHERWISE}"
        advice = f"take a port from LISTENING_BASE_PORT on, {_OTHERWISE}"
        return f"on ports {self.window} of {device} only; {advice}"


def rule_for(strategy: str, window: Window, *, device_given: bool) -> BindRule:
    """With a device of its own the session keeps to it, wildcards included: they would be more than the device."""
    if strategy == REWIRE_DEVICE:
        return BindRule(None, (window.device,))
    if strategy == FAIL and device_given:
        return BindRule(window, (window.device,))
    return BindRule(window, (LOCALHOST_IPV4, WILDCARD))
