"""The network strategies by name: what of a session's localhost the host sees.

Spelt here and nowhere else: a name that is misspelt in a comparison is silently another strategy.
"""

from __future__ import annotations

ISOLATE = "isolate"
FAIL = "fail"
REWIRE_DEVICE = "rewire-device"
REWIRE_PORT = "rewire-port"
STRATEGIES = (ISOLATE, FAIL, REWIRE_DEVICE, REWIRE_PORT)
MAC_STRATEGIES = (FAIL, REWIRE_DEVICE, REWIRE_PORT)  # all programs of a Mac share one localhost: none is isolated


def default_strategy(system: str) -> str:
    """*system* as `sys.platform` has it."""
    return REWIRE_PORT if system == "darwin" else ISOLATE
