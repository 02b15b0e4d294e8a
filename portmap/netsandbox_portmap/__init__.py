"""Ports of the host that stand for ports of a session; see ../README.md.

Here are the network strategies by name: what the host sees of a session's localhost. The names are spelled only here: a
misspelled name in a comparison would silently be another strategy.
"""

from __future__ import annotations

ISOLATE = "isolate"
FAIL = "fail"
REWIRE_DEVICE = "rewire-device"
REWIRE_PORT = "rewire-port"
STRATEGIES = (ISOLATE, FAIL, REWIRE_DEVICE, REWIRE_PORT)
MAC_STRATEGIES = (FAIL, REWIRE_DEVICE, REWIRE_PORT)  # all programs of macOS share one localhost, so none is isolated


def default_strategy(system: str) -> str:
    """*system* is a value of `sys.platform`."""
    return REWIRE_PORT if system == "darwin" else ISOLATE
