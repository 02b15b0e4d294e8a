"""The network strategies by name: what of a session's localhost the host sees.

Spelt here and nowhere else: a name that is misspelt in a comparison is silently another strategy.
"""

from __future__ import annotations

ISOLATE = "isolate"
FAIL = "fail"
REWIRE_DEVICE = "rewire-device"
REWIRE_PORT = "rewire-port"
STRATEGIES = (ISOLATE, FAIL, REWIRE_DEVICE, REWIRE_PORT)
