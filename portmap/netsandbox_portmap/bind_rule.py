"""The addresses and ports that a session may listen on (pure). The bind guard uses it for strategy `fail`, and behind
the preload library for the strategies that rewrite (INV-7).
"""

from __future__ import annotations

import errno

from netsandbox import system
from netsandbox.frozen import frozen
from netsandbox.policy import reasons
from netsandbox_portmap import FAIL, REWIRE_DEVICE, default_strategy
from netsandbox_portmap.window import LOCALHOST_IPV4

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_portmap.window import Window

UNPRIVILEGED_PORT = 1024
WILDCARD = "0.0.0.0"  # noqa: S104 (a name, not a bind)
_OTHERWISE = f"or run with --network-strategy {default_strategy(system.NAME)}"


def needs_capability(port: int) -> bool:
    """Whether a bind needs CAP_NET_BIND_SERVICE, which in the session's network we have and the command has not."""
    return 0 < port < UNPRIVILEGED_PORT


@frozen
class BindRule:
    """*window* None: any port that needs no capability. 127.0.0.1 in *devices* covers `::1`, 0.0.0.0 covers `::`."""

    window: Window | None
    devices: tuple[str, ...]

    def check(self, address: str, port: int) -> tuple[int, str] | None:
        """None, or the errno and the reason. Port 0 requests any port and gets one of the window."""
        outside = needs_capability(port) if self.window is None else port != 0 and port not in self.window
        if outside:
            return errno.EACCES, reasons.OUTSIDE_WINDOW
        if address not in self.devices:
            return errno.EADDRNOTAVAIL, reasons.WRONG_DEVICE
        return None

    def text(self) -> str:
        """What is allowed and what to do, for the notice on standard error."""
        device = "localhost" if LOCALHOST_IPV4 in self.devices else self.devices[0]
        if self.window is None:
            return f"on {device} only; bind localhost, {_OTHERWISE}"
        advice = f"take a port from LISTENING_BASE_PORT on, {_OTHERWISE}"
        return f"on ports {self.window} of {device} only; {advice}"


def rule_for(strategy: str, window: Window, *, device_given: bool) -> BindRule:
    """A session with its own device binds only that, without wildcards, which would reach beyond the device."""
    if strategy == REWIRE_DEVICE:
        return BindRule(None, (window.device,))
    if strategy == FAIL and device_given:
        return BindRule(window, (window.device,))
    return BindRule(window, (LOCALHOST_IPV4, WILDCARD))
